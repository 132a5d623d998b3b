// A process that is kept going, here one that only counts: what is wrong with it, and whether it starts, is said by the test.
import pino from 'pino'
import t from 'tap'
import { readIdentity } from '../../../core/process/identity.ts'
import { createProcessRegister } from '../../../core/process/register.ts'
import { supervise } from '../../../core/process/supervise.ts'
import { untilAnswering } from '../../../core/process/until-answering.ts'

const tracking = { processes: createProcessRegister(), plugin: 'tests', name: 'counter', identity: () => undefined }

t.test('what has ended is started again until it starts, and left alone once nobody cares for it any more', async (t) => {
  const lines: string[] = []
  const log = pino({}, { write: (line: string) => { lines.push(line) } })
  const over = new AbortController()
  let ends = 0
  let starts = 0
  await supervise({
    name: 'the counter',
    log,
    tracking,
    untilWrong: async (signal) => {
      if (++ends <= 2) return 'has ended'
      over.abort()
      return signal.aborted ? undefined : 'does not answer'
    },
    start: async () => { if (++starts === 1) throw new Error('not yet') },
    said: () => 'its last words'
  }, over.signal)
  t.equal(starts, 3, 'two ends, of which the first took two tries')
  t.equal(lines.filter((line) => line.includes('the counter has ended; it is started again')).length, 2)
  t.equal(lines.filter((line) => line.includes('its last words')).length, 2)
  t.equal(lines.filter((line) => line.includes('the counter could not be started') && line.includes('not yet')).length, 1)
})

t.test('the care ends while it waits to start it', async (t) => {
  const over = new AbortController()
  let starts = 0
  await supervise({
    name: 'it',
    log: pino({ level: 'silent' }),
    tracking,
    untilWrong: async () => 'has ended',
    start: async () => {
      if (++starts === 3) over.abort()
      throw new Error('never')
    }
  }, over.signal)
  t.equal(starts, 3)
})

t.test('people see what is kept running: whether it runs, how often it was started again and why, and no longer when nobody keeps it', async (t) => {
  const processes = createProcessRegister()
  const over = new AbortController()
  let identity = readIdentity(process.pid)
  let rounds = 0
  t.same(processes.list(), [])
  await supervise({
    name: 'the server itself',
    log: pino({ level: 'silent' }),
    tracking: { processes, plugin: 'tests', name: 'server', identity: () => identity },
    untilWrong: async () => {
      const [seen] = processes.list()
      if (rounds++ === 0) {
        t.match(seen, { name: 'server', plugin: 'tests', state: 'running', restarts: 0, identity: { pid: process.pid } })
        t.equal(seen?.lastEnd, undefined)
        identity = undefined
        return 'has ended (SIGKILL)'
      }
      t.match(seen, { state: 'running', restarts: 1, lastEnd: { reason: 'has ended (SIGKILL)', at: Number } })
      over.abort()
      return undefined
    },
    start: async () => {
      t.match(processes.list(), [{ state: 'ended', restarts: 0, lastEnd: { reason: 'has ended (SIGKILL)' } }])
      identity = readIdentity(process.pid)
    }
  }, over.signal)
  t.same(processes.list(), [])
})

t.test('a wait for an answer tells one that is gone from one that is silent, and ends with its signal', async (t) => {
  let looks = 0
  const wait = { answers: async () => ++looks === 3, isThere: () => true, withinMs: 60_000, signal: new AbortController().signal }
  t.equal(await untilAnswering(wait), 'answers')
  t.equal(looks, 3)
  t.equal(await untilAnswering({ ...wait, isThere: () => false }), 'gone')
  t.equal(await untilAnswering({ ...wait, answers: async () => false, withinMs: 0 }), 'silent')
  await t.rejects(untilAnswering({ ...wait, signal: AbortSignal.abort(new Error('over')) }), { message: 'over' })
})
