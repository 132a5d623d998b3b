// How a restart policy is asked for and shown.
import { Type } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../../core/http/schemas.ts'
import { DurationText, timeView } from '../life/schemas.ts'
import type { RestartPolicy, RestartState } from './policy.ts'

const closed = { additionalProperties: false } as const

export const RestartPolicySchema = Type.Object({
  policy: Type.Optional(oneOf(['never', 'always', 'on_failure'], { description: 'never when absent; on_failure: unless the program exits with 0' })),
  backoff: DurationText('Go duration before each attempt, at least 1s; 5s when absent'),
  max_attempts: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000, description: 'One after the other, before it is given up; 0, when absent: no end' })),
  stable_after: DurationText('Go duration: a run of this length makes the count begin anew; 10m when absent')
}, { ...closed, description: 'Whether the instance is started again when its program has ended by itself' })

export const RestartStatus = Type.Object({
  attempts: Type.Integer({ description: 'Restarts one after the other, without a run that was stable' }),
  blocked_reason: nullable(oneOf(['manual_stop', 'max_attempts_exceeded'], { description: 'Why it is not started again by itself; a start by hand ends that' })),
  last_attempt_at: nullable(Timestamp),
  last_reason: nullable(oneOf(['health_check_failed'], { description: 'What ended it last, when that was not the program itself' })),
  next_attempt_at: nullable(Timestamp)
}, closed)

const duration = (ms: number): string => ms % 60_000 === 0 && ms > 0 ? `${ms / 60_000}m` : ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`

/** The fields of an instance's answer. */
export function restartView (policy: RestartPolicy | undefined, state: RestartState | undefined) {
  if (policy === undefined) return {}
  return {
    restart_policy: { policy: policy.policy, backoff: duration(policy.backoffMs), max_attempts: policy.maxAttempts, stable_after: duration(policy.stableAfterMs) },
    restart_status: {
      attempts: state?.attempts ?? 0,
      blocked_reason: state?.blocked ?? null,
      last_attempt_at: timeView(state?.lastAttemptAt),
      last_reason: state?.lastReason ?? null,
      next_attempt_at: timeView(state?.next?.at)
    }
  }
}
