// How much of a log a page keeps.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import t, { type Test } from 'tap'
import { packageRoot } from '../../../core/package-root.ts'

interface Page { readonly MOST_LINES: number, createLogLines (): { readonly version: { readonly value: number }, readonly lines: readonly string[], add (line: string): void } }

t.test('a page that nobody looks at, which has no frames, keeps no more of a log than its limit', async (t) => {
  const frames = framesOf(t)
  const { createLogLines, MOST_LINES } = await pageLogLines(t)
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

/** The page's own code. */
async function pageLogLines (t: Test): Promise<Page> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-lines-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  const outfile = join(folder, 'log-lines.mjs')
  await build({ entryPoints: [join(packageRoot, 'plugins/console/web/parts/log-lines.ts')], bundle: true, format: 'esm', outfile })
  return await import(pathToFileURL(outfile).href) as Page
}
