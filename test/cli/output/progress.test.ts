// The line that says what is being waited for.
import { PassThrough } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { createProgress } from '../../../cli/output/progress.ts'

const CLEAR = '\u001b[K'

/** What is written to a stream that is a terminal of so many columns, or none. */
function stream (isTTY: boolean, columns = 80): { stream: Parameters<typeof createProgress>[0], written: () => string } {
  const through = Object.assign(new PassThrough(), { isTTY, columns })
  return { stream: through, written: () => String(through.read() ?? '') }
}

t.test('bytes have a rate, and a total where it is known; the line is taken away at the end', async (t) => {
  const { stream: terminal, written } = stream(true)
  const progress = createProgress(terminal, false)
  progress.bytes('copied', 0)
  t.match(written(), /^\rcopied 0 B, 0 B\/s/)
  progress.bytes('copied', 1)
  t.equal(written(), '', 'not more often than can be read')
  await delay(150)
  progress.bytes('copied', 3 * 2 ** 20, 6 * 2 ** 20)
  t.match(written(), /^\rcopied 3(?:\.0)? MiB of 6(?:\.0)? MiB, [\d.]+ [KM]iB\/s/)
  progress.end()
  t.equal(written(), `\r${CLEAR}`)
  progress.end()
  t.equal(written(), '', 'once')
})

t.test('steps replace each other in one line, which is no wider than the terminal and moves no cursor', async (t) => {
  const { stream: terminal, written } = stream(true, 30)
  const progress = createProgress(terminal, false)
  progress.step('alpine: pulling')
  progress.step('alpine: pulling')
  t.equal(written(), `\ralpine: pulling${CLEAR}`)
  progress.step(`${'long '.repeat(20)}`)
  t.match(written(), /^\r(?:long ){5}lon…/)
  progress.step('a\u001b[2Jb')
  t.equal(written(), `\ra\\u001b[2Jb${CLEAR}`)
})

t.test('where it is no terminal, and with -q, nothing is written', async (t) => {
  for (const [isTerminal, quiet] of [[false, false], [true, true]] as const) {
    const { stream: to, written } = stream(isTerminal)
    const progress = createProgress(to, quiet)
    progress.step('pulling')
    progress.bytes('copied', 1, 2)
    progress.end()
    t.equal(written(), '')
  }
})
