// `berth wait`: also while the server starts again.
import { setTimeout as delay } from 'node:timers/promises'
import { AGAIN_MS, isAway, PATIENCE_MS } from '../api/away.ts'
import { Refusal } from '../api/failures.ts'
import { path } from '../api/path.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import { forEach } from '../output/results.ts'
import type { Run } from '../spec.ts'

interface Waited { readonly state: string, readonly timed_out: boolean, readonly state_error?: string | null, readonly restore_error?: string }

/** The longest wait of one call; longer waits take several calls. */
const ROUND_MS = 240_000

export const run: Run = async (session, input) => {
  const api = await session.api()
  const state = input.text('state') ?? 'Stopped'
  const deadline = session.timeoutMs === undefined ? Infinity : Date.now() + session.timeoutMs
  /** One that has never answered is none that comes back. */
  let hasAnswered = false
  return await forEach(session, input.many(0), async (name) => {
    let awaySince: number | undefined
    while (true) {
      const left = Math.min(ROUND_MS, deadline - Date.now())
      if (left <= 0) throw new Failure(`${name} is not ${state} yet`, { exitCode: EXIT.timeout })
      try {
        const answer = await api.call<Waited>('GET', path`/instances/${name}/wait`, { query: { state, timeout: `${Math.max(1, Math.round(left))}ms` } })
        hasAnswered = true
        awaySince = undefined
        if (answer.state === state) return answer
        if (!answer.timed_out) throw new Failure(`${name} is ${answer.state}${reasonOf(answer)}, and will not be ${state} by itself`, { exitCode: EXIT.conflict })
      } catch (error) {
        hasAnswered ||= error instanceof Refusal
        awaySince ??= performance.now()
        if (!isAway(error) || !hasAnswered || performance.now() - awaySince > PATIENCE_MS) throw error
        await delay(Math.min(AGAIN_MS, left), undefined, { signal: session.interrupted })
      }
    }
  })
}

function reasonOf ({ state_error: state, restore_error: restore }: Waited): string {
  const reason = state ?? restore
  return reason === undefined ? '' : ` (${reason})`
}
