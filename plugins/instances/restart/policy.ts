// When an instance is started again by itself. Pure.
import type { Moment } from '../life/moment.ts'

export interface RestartPolicy {
  readonly policy: 'never' | 'always' | 'on_failure'
  readonly backoffMs: number
  /** 0: no end */
  readonly maxAttempts: number
  readonly stableAfterMs: number
}

/** What is stored beside the policy. A fork begins with none of it. */
export interface RestartState {
  /** attempts in a row since the last stable run */
  readonly attempts: number
  readonly blocked?: 'manual_stop' | 'max_attempts_exceeded' | undefined
  /** The VM is being ended because its health check failed: it is started again, whatever the exit code of its program. */
  readonly failed?: boolean | undefined
  readonly lastReason?: 'health_check_failed' | undefined
  /** epoch `ms` */
  readonly lastAttemptAt?: number | undefined
  readonly next?: Moment | undefined
}

export const NO_RESTARTS: RestartState = { attempts: 0 }

/** `rest`: the instance is left as it is, or runs; `give-up`: all attempts were made */
export type Verdict = { readonly decision: 'rest' } | { readonly decision: 'give-up' } | { readonly decision: 'restart', readonly attempts: number }

/** The fields of a row that the decision depends on. */
export interface Judged {
  readonly status: string
  /** of its VM */
  readonly handle: unknown
  readonly standbyAt: number | null
  readonly exit: { readonly exitCode: number | null } | null
  readonly startedAt: number | null
  readonly stoppedAt: number | null
  readonly spec: { readonly restartPolicy?: RestartPolicy | undefined }
  readonly life: { readonly restart?: RestartState | undefined }
}

/** What to do with an instance whose program may have ended. A fork that was never started has no exit, nor has an instance that a snapshot was just restored to. */
export function judge ({ status, handle, standbyAt, exit, startedAt, stoppedAt, spec, life }: Judged): Verdict {
  const { restartPolicy: policy } = spec
  const { attempts: before, blocked, failed, lastAttemptAt = 0 } = life.restart ?? NO_RESTARTS
  if (policy === undefined || policy.policy === 'never' || blocked !== undefined) return { decision: 'rest' }
  if (status !== 'active' || handle !== null || standbyAt !== null || exit === null) return { decision: 'rest' }
  if (policy.policy === 'on_failure' && exit.exitCode === 0 && failed !== true) return { decision: 'rest' }
  // A start that fails leaves the times of the run before.
  const hasRun = startedAt !== null && stoppedAt !== null && startedAt >= lastAttemptAt
  const attempts = hasRun && stoppedAt - startedAt >= policy.stableAfterMs ? 0 : before
  return policy.maxAttempts > 0 && attempts >= policy.maxAttempts ? { decision: 'give-up' } : { decision: 'restart', attempts }
}

/** The state of an instance whose VM is started. A start by hand resets it. */
export function startedState (state: RestartState | undefined, by: 'hand' | 'policy' | 'restore'): RestartState | undefined {
  if (state === undefined || by === 'hand') return undefined
  return { ...state, blocked: undefined, failed: undefined, next: undefined }
}

/** The state of an instance that is stopped by hand. */
export function stoppedState (state: RestartState = NO_RESTARTS): RestartState {
  return { ...state, blocked: 'manual_stop', failed: undefined, next: undefined }
}

/** The state under another policy: earlier attempts do not count any more; only a stop by hand still holds. */
export function renewedState (state: RestartState | undefined): RestartState | undefined {
  return state === undefined ? undefined : { ...state, attempts: 0, blocked: state.blocked === 'manual_stop' ? 'manual_stop' : undefined, next: undefined }
}
