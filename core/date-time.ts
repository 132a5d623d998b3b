// Reads points in time as callers write them: RFC 3339, which is what the format date-time of the API's document means.
import { InvalidRequest } from './errors/common.ts'

const RFC_3339 = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/
const LONGEST_SHOWN = 64

/** later ones have years of more than four digits, and no date-time */
export const LAST_DATE = Date.UTC(10_000, 0)

/** Milliseconds since the epoch; undefined when the text is no time, or a leap second, which has no place among them. */
export function parseTime (text: string): number | undefined {
  const time = text.toUpperCase()
  const [, date] = RFC_3339.exec(time) ?? []
  if (date === undefined || !isDate(date)) return undefined
  const at = Date.parse(time)
  return Number.isNaN(at) ? undefined : at
}

/** The same of a field of a request. @throws invalid_request naming the field */
export function readTime (field: string, text: string): number {
  const at = parseTime(text)
  if (at === undefined) throw InvalidRequest(`${field}: ${JSON.stringify(text.slice(0, LONGEST_SHOWN))} is not a time such as 2030-01-31T12:00:00Z`)
  return at
}

/** `Date.parse` takes the 30th of February for the 2nd of March. */
function isDate (date: string): boolean {
  const midnight = Date.parse(`${date}T00:00:00Z`)
  return !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(date)
}
