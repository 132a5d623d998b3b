// How long the clock can be believed already. One that is set wrong, and right again soon, must not have made old what is not: what cannot be taken back asks here first.

/** A clock that is corrected a little all the time has not been set. */
const TOLERANCE_MS = 60_000

export interface Clocks {
  /** epoch ms */
  now (): number
  /** ms that pass whatever is done to the clock */
  elapsed (): number
}

export const hostClocks: Clocks = { now: Date.now, elapsed: () => performance.now() }

/** @returns for how many ms the clock has gone with the time, `Infinity` when it has since this call; to be asked again and again */
export function steadyClock (clocks: Clocks = hostClocks): () => number {
  let offset = clocks.now() - clocks.elapsed()
  let setAt = -Infinity
  return () => {
    const elapsed = clocks.elapsed()
    const newOffset = clocks.now() - elapsed
    if (Math.abs(newOffset - offset) > TOLERANCE_MS) setAt = elapsed
    offset = newOffset
    return elapsed - setAt
  }
}
