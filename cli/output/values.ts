// Sizes, times and durations for people.
import { roundedSize } from '../../core/units.ts'

/** @example size(1536) is `1.5 KiB` */
export function size (bytes: number | null | undefined): string {
  return bytes == null ? '-' : roundedSize(bytes)
}

const STEPS = [['day', 86_400], ['hour', 3_600], ['minute', 60], ['second', 1]] as const

/** @example age('2026-01-01T00:00:00Z', now) is `3 hours ago` */
export function age (time: string | null | undefined, now = Date.now()): string {
  if (time == null) return '-'
  const seconds = Math.round((now - Date.parse(time)) / 1000)
  if (Number.isNaN(seconds)) return '-'
  const past = Math.abs(seconds)
  const [name, length] = STEPS.find(([, step]) => past >= step) ?? ['second', 1]
  const count = Math.floor(past / length)
  const text = `${count} ${name}${count === 1 ? '' : 's'}`
  return seconds >= 0 ? `${text} ago` : `in ${text}`
}

/** The first 12 characters, which the API accepts for the whole id as long as no other id begins with them. */
export function shortId (id: string): string {
  return id.slice(0, 12)
}

const DURATION_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** Milliseconds of `90s`, `1h30m` or plain seconds; undefined when the text is not a duration. */
export function durationMs (text: string): number | undefined {
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  if (!/^(?:\d{1,9}(?:ms|s|m|h))+$/.test(text)) return undefined
  return [...text.matchAll(/(\d{1,9})(ms|s|m|h)/g)].reduce((sum, [, count, unit]) => sum + Number(count) * (DURATION_UNITS[unit ?? ''] ?? 0), 0)
}
