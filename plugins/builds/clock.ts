// Time as builds use it.

/** Epoch ms, never the same twice: what was made one after the other is in that order for good. */
export function uniqueClock (now: () => number = Date.now): () => number {
  let last = 0
  return () => {
    last = Math.max(now(), last + 1)
    return last
  }
}
