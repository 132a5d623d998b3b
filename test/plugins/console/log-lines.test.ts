// How much of a log a page keeps.
import t, { type Test } from 'tap'
import { pageModule } from './page-module.ts'

interface Page { readonly MOST_LINES: number, createLogLines (): { readonly version: { readonly value: number }, readonly lines: readonly string[], add (line: string): void } }

t.test('a page that nobody looks at, which has no frames, keeps no more of a log than its limit', async (t) => {
  const frames = framesOf(t)
  const { createLogLines, MOST_LINES } = await pageModule<Page>(t, 'parts/log-lines.ts')
  const log = createLogLines()
  for (let line = 1; line <= MOST_LINES * 5; line++) log.add(String(line))
  t.ok(log.lines.length <= MOST_LINES * 2, `${log.lines.length} lines`)
  t.equal(log.lines.at(-1), String(MOST_LINES * 5), 'the newest ones')
  t.equal(log.version.value, 0)
  for (const frame of frames.splice(0)) frame()
  t.equal(log.version.value, 1, 'the next frame shows them')
  t.ok(log.lines.length <= MOST_LINES * 1.1, `${log.lines.length} lines`)
})

/** What waits for the next frame of the screen: none comes by itself. */
function framesOf (t: Test): Array<() => void> {
  const frames: Array<() => void> = []
  Object.assign(globalThis, { requestAnimationFrame: (frame: () => void) => frames.push(frame) })
  t.teardown(() => { Reflect.deleteProperty(globalThis, 'requestAnimationFrame') })
  return frames
}
