// Whether the clock can be believed for what cannot be taken back. One that is set wrong, and right again soon, must not have made old what is not.
import type { Clock } from '../clock.ts'

/** A clock that is corrected a little all the time has not been set. */
const TOLERANCE_MS = 60_000
const STEADY_MS = 3_600_000

/** @returns whether the clock has gone with the time for an hour, or since the server started; to be asked again and again */
export function steadyClock (clock: Pick<Clock, 'now' | 'elapsed'>): () => boolean {
  let offset = clock.now() - clock.elapsed()
  let setAt = -Infinity
  return () => {
    const elapsed = clock.elapsed()
    const newOffset = clock.now() - elapsed
    if (Math.abs(newOffset - offset) > TOLERANCE_MS) setAt = elapsed
    offset = newOffset
    return elapsed - setAt >= STEADY_MS
  }
}
