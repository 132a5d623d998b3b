// `berth wait`
import { path } from '../api/path.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import { forEach } from '../output/results.ts'
import type { Run } from '../spec.ts'

interface Waited { readonly state: string, readonly timed_out: boolean, readonly state_error?: string | null }

/** The longest wait of one call; longer waits take several calls. */
const ROUND_MS = 240_000

export const run: Run = async (session, input) => {
  const api = await session.api()
  const state = input.text('state') ?? 'Stopped'
  const deadline = session.timeoutMs === undefined ? Infinity : Date.now() + session.timeoutMs
  return await forEach(session, input.many(0), async (name) => {
    while (true) {
      const left = Math.min(ROUND_MS, deadline - Date.now())
      if (left <= 0) throw new Failure(`${name} is not ${state} yet`, { exitCode: EXIT.timeout })
      const answer = await api.call<Waited>('GET', path`/instances/${name}/wait`, { query: { state, timeout: `${Math.max(1, Math.round(left))}ms` } })
      if (answer.state === state) return answer
      if (!answer.timed_out) throw new Failure(`${name} is ${answer.state}${answer.state_error == null ? '' : ` (${answer.state_error})`}, and will not be ${state} by itself`, { exitCode: EXIT.conflict })
    }
  })
}
