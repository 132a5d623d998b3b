// GET wait: what its query says, and its answer.
import { Stopping } from '../../../core/http/errors.ts'
import { parseDuration } from '../../../core/units.ts'
import { InvalidWaitState, InvalidWaitTimeout } from '../errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { waitForState, type Waited, type WaitFor } from '../model/wait.ts'
import { STATES, type WaitAnswer } from './schemas.ts'
import { printable } from '../validate/env.ts'

interface WaitQuery { readonly state?: string, readonly timeout?: string }

const DEFAULT_TIMEOUT_MS = 60_000
const MAX_TIMEOUT_MS = 300_000

/** @throws invalid_state, invalid_timeout */
function parseWait (query: WaitQuery): WaitFor {
  const state = STATES.find((known) => known === query.state)
  if (state === undefined) throw InvalidWaitState('query parameter state', `must be one of ${STATES.join(', ')}`)
  if (query.timeout === undefined || query.timeout === '') return { state, timeoutMs: DEFAULT_TIMEOUT_MS }
  const timeoutMs = parseDuration(query.timeout)
  if (timeoutMs === undefined) throw InvalidWaitTimeout('query parameter timeout', `"${printable(query.timeout)}" is not a duration such as 30s or 1m30s`)
  return { state, timeoutMs: Math.min(timeoutMs, MAX_TIMEOUT_MS) }
}

/**
 * @param gone aborts when who asks has left
 * @param over aborts then, and when the server ends
 * @throws invalid_state, invalid_timeout, not_found, and Stopping: an answer would say that nothing comes any more, while whoever asks again is told by the next server
 */
export async function serveWait (instance: LiveInstance, query: WaitQuery, gone: AbortSignal, over: AbortSignal): Promise<WaitAnswer> {
  const waited = await waitForState(instance, parseWait(query), over)
  if (waited.cutOff && !gone.aborted) throw Stopping()
  return waitAnswer(waited)
}

function waitAnswer ({ state, timedOut, error, restoreError }: Waited): WaitAnswer {
  return { state, timed_out: timedOut, ...(error === undefined ? {} : { state_error: error }), ...(restoreError === undefined ? {} : { restore_error: restoreError }) }
}
