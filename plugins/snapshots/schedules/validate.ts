// The rules of a schedule that its shape cannot say.
import { InvalidRequest } from '../../../core/errors/common.ts'
import { parseDuration } from '../../../core/units.ts'
import type { SetSchedule } from '../schemas.ts'
import type { ScheduleSettings } from './record.ts'

const LEAST_INTERVAL_MS = 60_000
/** the limit of Go's durations, and of what a date can hold */
const MOST_MS = 2 ** 63 / 1e6

/** @throws invalid_request */
export function settingsOf ({ interval, retention, name_prefix: namePrefix = null, metadata = {} }: SetSchedule): ScheduleSettings {
  checkDuration('interval', interval, LEAST_INTERVAL_MS, 'at least 1m')
  const { max_count: maxCount = null, max_age: maxAge = null } = retention
  if (maxAge !== null) checkDuration('retention.max_age', maxAge, 1, 'at least 1ms')
  if (maxAge === null && (maxCount ?? 0) === 0) {
    throw InvalidRequest('retention: max_count (at least 1) or max_age is needed, or snapshots would be kept without end')
  }
  return { interval, maxCount, maxAge, namePrefix, metadata }
}

/** Milliseconds of a duration that has been checked. */
export function durationOf (text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw new Error(`"${text}" was stored as a duration and is none`)
  return Math.round(ms)
}

function checkDuration (place: string, text: string, leastMs: number, rule: string): void {
  const ms = parseDuration(text)
  if (ms === undefined) throw InvalidRequest(`${place}: "${text}" is not a duration such as 30m, 1h30m or 24h`)
  if (ms < leastMs) throw InvalidRequest(`${place}: must be ${rule}`)
  if (ms > MOST_MS) throw InvalidRequest(`${place}: must be at most 2562047h`)
}
