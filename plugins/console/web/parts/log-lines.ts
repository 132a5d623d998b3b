// The newest lines of a log, up to a limit. New lines are reported with the next frame of the screen, not one by one.
import { signal } from '@preact/signals'

export const MOST_LINES = 100_000

export interface LogLines {
  /** grows with each change */
  readonly version: { readonly value: number }
  readonly lines: readonly string[]
  add (line: string): void
  /** All are read anew. */
  clear (): void
}

export function createLogLines (): LogLines {
  const version = signal(0)
  const lines: string[] = []
  let isPlanned = false
  const drop = (): void => { lines.splice(0, lines.length - MOST_LINES) }
  const tell = (): void => {
    if (isPlanned) return
    isPlanned = true
    requestAnimationFrame(() => {
      isPlanned = false
      // Not at each line: moving so many lines is expensive.
      if (lines.length > MOST_LINES * 1.1) drop()
      version.value++
    })
  }
  return {
    version,
    lines,
    add (line) {
      lines.push(line)
      // A page that nobody looks at has no frames, and its lines come all the same.
      if (lines.length > MOST_LINES * 2) drop()
      tell()
    },
    clear () {
      lines.length = 0
      tell()
    }
  }
}
