// The clock for builds.

/** Epoch ms, never the same twice, so that builds always stay in the order in which they were made. */
export function uniqueClock (now: () => number = Date.now): () => number {
  let last = 0
  return () => {
    last = Math.max(now(), last + 1)
    return last
  }
}
