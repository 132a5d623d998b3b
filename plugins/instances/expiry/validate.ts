// Rules of `ttl` and `expires_at`.
import { LAST_DATE, parseTime } from '../../../core/date-time.ts'
import { parseDuration } from '../../../core/units.ts'
import { InvalidExpiresAt, InvalidTtl } from '../errors.ts'
import { printable } from '../validate/env.ts'
import type { Lifetime } from './expiry.ts'

/** the limit of Go's durations, and of what a date can hold */
const MOST_MS = 2 ** 63 / 1e6

export interface LifetimeRequest { readonly ttl?: string, readonly expires_at?: string }

/** Undefined: the request says nothing. @throws invalid_ttl, invalid_expires_at */
export function checkLifetime ({ ttl, expires_at: expiresAt }: LifetimeRequest): Lifetime | undefined {
  if (ttl !== undefined && expiresAt !== undefined) throw InvalidExpiresAt('expires_at', 'goes not together with ttl')
  if (ttl !== undefined) return { ttlMs: checkTtl(ttl) }
  return expiresAt === undefined ? undefined : { expiresAt: checkTime(expiresAt) }
}

function checkTtl (text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw InvalidTtl('ttl', `"${printable(text)}" is not a duration such as 30m, 1h30m or 24h; 0s is none`)
  if (ms > MOST_MS) throw InvalidTtl('ttl', 'must be at most 2562047h')
  return ms
}

function checkTime (text: string): number {
  const at = parseTime(text)
  if (at === undefined) throw InvalidExpiresAt('expires_at', `"${printable(text)}" is not a time such as 2030-01-31T12:00:00Z`)
  if (at <= Date.now()) throw InvalidExpiresAt('expires_at', 'must be in the future')
  if (at >= LAST_DATE) throw InvalidExpiresAt('expires_at', 'must be before the year 10000')
  return at
}
