// A limit of time beside other signals, also when there is little memory.
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { within, withDeadline, withSignals } from '../../../core/jobs/deadline.ts'
import { eventually } from '../../helpers/eventually.ts'
import { usersOf } from '../../helpers/signal-users.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Resolves with what aborted it. */
async function ended (signal: AbortSignal): Promise<unknown> {
  return await new Promise((resolve) => { signal.addEventListener('abort', () => { resolve(signal.reason) }) })
}

t.test('the time comes, whatever is collected as garbage meanwhile', async (t) => {
  const ends = Array.from({ length: 100 }, async () => await ended(withDeadline(200, new AbortController().signal)))
  await delay(50)
  collect()
  const late = delay(5000, 'never', { ref: true })
  for (const end of ends) t.match(await Promise.race([end, late]), { name: 'TimeoutError' })
})

t.test('another signal comes before it, at once or later', async (t) => {
  const other = new AbortController()
  const end = ended(withDeadline(60_000, other.signal))
  other.abort(new Error('enough'))
  t.match(await end, { message: 'enough' })
  t.ok(withDeadline(60_000, other.signal).aborted)
})

t.test('nothing of it is left in a signal that lives longer: at the end of the work, or at the deadline', async (t) => {
  const long = new AbortController()
  const aborts = async (signal: AbortSignal): Promise<unknown> => await ended(signal)
  await within(60_000, [long.signal], async () => {})
  await withSignals([long.signal], async () => {})
  await t.rejects(within(60_000, [long.signal], async () => await Promise.reject(new Error('failed'))))
  t.match(await within(10, [long.signal], aborts), { name: 'TimeoutError' })
  t.equal(usersOf(long.signal), 0)
  for (let n = 0; n < 20; n++) withDeadline(50, long.signal)
  await eventually('their deadline', () => usersOf(long.signal) === 0)
  const works = [within(60_000, [long.signal], aborts), withSignals([new AbortController().signal, long.signal], aborts)]
  long.abort(new Error('enough'))
  for (const work of works) t.match(await work, { message: 'enough' })
})
