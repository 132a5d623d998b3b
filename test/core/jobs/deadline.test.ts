// A limit of time beside other signals, also when there is little memory.
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { withDeadline } from '../../../core/jobs/deadline.ts'

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
