// A clock that a test sets, and time that a test lets pass.
import type { Clocks } from '../../core/steady-clock.ts'

const HOUR_MS = 3_600_000

export interface SettableClock {
  readonly clocks: Clocks
  /** Puts the clock ahead, or back. */
  set (hours: number): void
  pass (hours: number): void
}

/** @param now what it says at first, epoch ms */
export function settableClock (now = 1_800_000_000_000): SettableClock {
  let elapsed = 0
  let offset = now
  return {
    clocks: { now: () => offset + elapsed, elapsed: () => elapsed },
    set (hours) { offset += hours * HOUR_MS },
    pass (hours) { elapsed += hours * HOUR_MS }
  }
}
