// How long a key is to last, as people write it: a Go duration, or days, since keys live for days.
import { parseDuration } from '../units.ts'

const DAY_MS = 86_400_000

/** `30d`, `12h`, `1d12h` in milliseconds; undefined for any other text. */
export function parseLifetime (text: string): number | undefined {
  const [, days, rest] = /^(?:(\d{1,6})d)?(.*)$/.exec(text) ?? []
  const restMs = rest === undefined || rest === '' ? 0 : parseDuration(rest)
  const sum = Number(days ?? 0) * DAY_MS + (restMs ?? NaN)
  return sum > 0 ? sum : undefined
}
