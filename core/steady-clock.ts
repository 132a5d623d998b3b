// For how long the wall clock has been right. A clock that was set wrong for a while must not make things expire: code that deletes by age asks here first.

/** A difference below this is a gradual correction of the clock, not a clock that was set. */
export const TOLERANCE_MS = 60_000
/** for how long the clock must have gone on steadily before it can make something too old */
const STEADY_MS = 3_600_000

export interface Clocks {
  /** epoch ms */
  now (): number
  /** ms that pass whatever is done to the clock */
  elapsed (): number
}

export const hostClocks: Clocks = { now: () => Date.now(), elapsed: () => performance.now() }

/** @returns for how many ms the wall clock has agreed with elapsed time, `Infinity` when it has since this call; to be called again and again */
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

/** @returns whether the wall clock can be believed when it makes something too old: not for an hour after it was set; that of this call is believed. To be called again and again */
export function believableClock (clocks: Clocks = hostClocks): () => boolean {
  const steadyFor = steadyClock(clocks)
  return () => steadyFor() >= STEADY_MS
}
