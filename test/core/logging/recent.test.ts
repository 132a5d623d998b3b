// The newest lines of the log in memory.
import t from 'tap'
import { createLog } from '../../../core/logging/log.ts'
import { createRecentLog, type KeptLog } from '../../../core/logging/recent.ts'

function loggingTo (recent: KeptLog): { readonly log: ReturnType<typeof createLog>, readonly written: string[] } {
  const written: string[] = []
  return { log: createLog({ level: 'debug', destination: { write: (line: string) => { written.push(line) } }, recent }), written }
}

const kept = (recent: KeptLog): string[] => Array.from({ length: recent.next - recent.first }, (_each, index) => recent.at(recent.first + index) ?? 'nothing')

t.test('what is written is kept as it was written, secrets masked, and goes where it went before', async (t) => {
  const recent = createRecentLog(2 ** 20)
  const { log, written } = loggingTo(recent)
  log.child({ plugin: 'x' }).info({ token: 'of-gold' }, 'first')
  log.trace('less than is written')
  log.warn('second')
  t.same(kept(recent), written.map((line) => line.trimEnd()))
  t.match(kept(recent).map((line) => JSON.parse(line)), [{ level: 'info', plugin: 'x', token: '***', msg: 'first' }, { level: 'warn', msg: 'second' }])
})

t.test('the newest lines push the oldest out, by their count and by their size', async (t) => {
  const few = createRecentLog(2 ** 20, 3)
  const { log } = loggingTo(few)
  for (let number = 0; number < 10; number++) log.info(String(number))
  t.same(kept(few).map((line) => JSON.parse(line).msg), ['7', '8', '9'])
  t.same([few.first, few.next, few.at(6), few.at(10)], [7, 10, undefined, undefined])

  const small = createRecentLog(16 * 1024)
  const { log: chatty } = loggingTo(small)
  for (let number = 0; number < 1000; number++) chatty.info({ text: 'x'.repeat(number % 500) }, String(number))
  const lines = kept(small)
  t.equal(JSON.parse(lines.at(-1) ?? '').msg, '999')
  t.ok(lines.length > 5 && lines.join('').length * 2 <= 16 * 1024, `${lines.length} lines, ${lines.join('').length} characters`)
})

t.test('a line of a megabyte takes the place of no other: its begin is kept', async (t) => {
  const recent = createRecentLog(2 ** 20)
  const { log, written } = loggingTo(recent)
  log.info('before')
  log.child({ plugin: 'x' }).error({ answer: 'y'.repeat(2 ** 20) }, `begin ${'z'.repeat(2 ** 20)}`)
  log.info('after')
  t.ok((written[1]?.length ?? 0) > 2 ** 21, 'it is written as it is')
  const [before, long, after] = kept(recent)
  t.match([JSON.parse(before ?? ''), JSON.parse(after ?? '')], [{ msg: 'before' }, { msg: 'after' }])
  t.match(JSON.parse(long ?? ''), { level: 'error', plugin: 'x', cut: written[1]?.length, msg: /^begin z{100}/ })
  t.ok((long?.length ?? 0) < 8192)
})

t.test('a log that keeps nothing has nothing between it and its destination', async (t) => {
  const destination = { write: () => {} }
  const recent = createRecentLog(0)
  t.equal(recent.before(destination), destination)
})

t.test('what was buffered is out before the process ends', async (t) => {
  let flushed = 0
  const log = createLog({ level: 'info', destination: Object.assign({ write: () => {} }, { flushSync: () => { flushed++ } }), recent: createRecentLog(1024) })
  log.fatal('the end')
  t.equal(flushed, 1)
})
