// GET wait: what its query says, and its answer.
import { parseDuration } from '../../../core/units.ts'
import { InvalidWaitState, InvalidWaitTimeout } from '../errors.ts'
import type { Waited, WaitFor } from '../model/wait.ts'
import { STATES, type WaitAnswer } from './schemas.ts'
import { printable } from '../validate/env.ts'

const DEFAULT_TIMEOUT_MS = 60_000
const MAX_TIMEOUT_MS = 300_000

/** @throws invalid_state, invalid_timeout */
export function parseWait (query: { state?: string, timeout?: string }): WaitFor {
  const state = STATES.find((known) => known === query.state)
  if (state === undefined) throw InvalidWaitState('query parameter state', `must be one of ${STATES.join(', ')}`)
  if (query.timeout === undefined) return { state, timeoutMs: DEFAULT_TIMEOUT_MS }
  const timeoutMs = parseDuration(query.timeout)
  if (timeoutMs === undefined) throw InvalidWaitTimeout('query parameter timeout', `"${printable(query.timeout)}" is not a duration such as 30s or 1m30s`)
  if (timeoutMs > MAX_TIMEOUT_MS) throw InvalidWaitTimeout('query parameter timeout', 'must be at most 5m')
  return { state, timeoutMs }
}

export function waitAnswer ({ state, timedOut, error, restoreError }: Waited): WaitAnswer {
  return { state, timed_out: timedOut, ...(error === undefined ? {} : { state_error: error }), ...(restoreError === undefined ? {} : { restore_error: restoreError }) }
}
