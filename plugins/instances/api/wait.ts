// GET wait: a long poll. It ends when the instance is in the wanted state, when it cannot get there any more, when the time is over, or when the client has left.
import { NotFound } from '../../../core/errors/common.ts'
import { parseDuration } from '../../../core/units.ts'
import type { InstanceState } from '../contract.ts'
import { InvalidWaitState, InvalidWaitTimeout } from '../errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { STATES, type WaitAnswer } from './schemas.ts'
import { isTerminal } from '../model/state.ts'
import { printable } from '../validate/env.ts'

const DEFAULT_TIMEOUT_MS = 60_000
const MAX_TIMEOUT_MS = 300_000

export interface WaitFor { readonly state: InstanceState, readonly timeoutMs: number }

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

/** @throws NotFound when the instance is deleted meanwhile */
export async function waitForState (instance: LiveInstance, wanted: WaitFor, signal: AbortSignal): Promise<WaitAnswer> {
  const settled = (): boolean => instance.deleted || instance.state === wanted.state || isTerminal(instance.state)
  let timedOut = false
  if (!settled()) {
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer)
        unsubscribe()
        signal.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(() => {
        timedOut = true
        end()
      }, wanted.timeoutMs)
      const unsubscribe = instance.onChange(() => { if (settled()) end() })
      signal.addEventListener('abort', end)
      if (signal.aborted) end()
    })
  }
  if (instance.deleted) throw NotFound('instance', instance.id)
  const { state, error } = instance.derived
  return { state, timed_out: timedOut, ...(error === undefined ? {} : { state_error: error }) }
}
