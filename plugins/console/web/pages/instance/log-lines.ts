// The lines of a log, as many as are kept: the oldest go. New ones are told in turns with the screen, not one by one.
import { signal } from '@preact/signals'

export const MOST_LINES = 100_000

export interface LogLines {
  /** grows with each change */
  readonly version: { readonly value: number }
  readonly lines: readonly string[]
  add (line: string): void
}

export function createLogLines (): LogLines {
  const version = signal(0)
  const lines: string[] = []
  let isPlanned = false
  const tell = (): void => {
    if (isPlanned) return
    isPlanned = true
    requestAnimationFrame(() => {
      isPlanned = false
      // Not at each line: moving so many is dear.
      if (lines.length > MOST_LINES * 1.1) lines.splice(0, lines.length - MOST_LINES)
      version.value++
    })
  }
  return {
    version,
    lines,
    add (line) { lines.push(line); tell() }
  }
}
