// The clock for builds.
import { believableClock, hostClocks, TOLERANCE_MS, type Clocks } from '../../core/steady-clock.ts'

export interface Clock {
  /** epoch ms */
  now (): number
  /** Epoch ms, never the same twice, so that builds stay in the order in which they were made; a clock that is put back is followed all the same. */
  unique (): number
  /** whether it can be believed when it makes something too old */
  isBelievable (): boolean
}

export function createClock (clocks: Clocks = hostClocks): Clock {
  let last = 0
  return {
    now: () => clocks.now(),
    unique () {
      const now = clocks.now()
      last = last - now > TOLERANCE_MS ? now : Math.max(now, last + 1)
      return last
    },
    isBelievable: believableClock(clocks)
  }
}
