// Rules of `restart_policy`.
import type { Static } from 'typebox'
import { parseDuration } from '../../../core/units.ts'
import { InvalidRestartPolicy } from '../errors.ts'
import { printable } from '../validate/env.ts'
import type { RestartPolicy } from './policy.ts'
import type { RestartPolicySchema } from './schemas.ts'

/** A program that ends at once must not keep the host busy. */
const LEAST_BACKOFF_MS = 1000
const MOST_MS = 24 * 3_600_000

/** The policy with the defaults filled in. @throws invalid_restart_policy */
export function checkRestartPolicy (asked: Static<typeof RestartPolicySchema> | undefined): RestartPolicy | undefined {
  if (asked === undefined) return undefined
  const { policy = 'never', backoff = '5s', max_attempts: maxAttempts = 0, stable_after: stableAfter = '10m' } = asked
  return { policy, backoffMs: durationOf('backoff', backoff, LEAST_BACKOFF_MS), maxAttempts, stableAfterMs: durationOf('stable_after', stableAfter, 0) }
}

function durationOf (field: string, text: string, leastMs: number): number {
  const place = `restart_policy.${field}`
  const ms = parseDuration(text)
  if (ms === undefined) throw InvalidRestartPolicy(place, `"${printable(text)}" is not a duration such as 5s or 10m`)
  if (ms < leastMs || ms > MOST_MS) throw InvalidRestartPolicy(place, leastMs === 0 ? 'must be at most 24h' : 'must be 1s to 24h')
  return Math.round(ms)
}
