// Durations and sizes of a checked configuration, as numbers.
import { parseDuration, parseSize } from '../units.ts'

/** Milliseconds of a duration whose form the schema has checked. */
export function durationMs (text: string): number {
  return certain(parseDuration(text), text)
}

/** Bytes of a size whose form the schema has checked. */
export function sizeBytes (text: string): number {
  return certain(parseSize(text), text)
}

function certain (value: number | undefined, text: string): number {
  if (value === undefined) throw new Error(`"${text}" passed the schema of the configuration and still cannot be read`)
  return value
}
