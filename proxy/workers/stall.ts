// For how long a worker's event loop is held up.
// Node's monitorEventLoopDelay loses what these figures are for: after each reset it needs a whole interval before it measures, and a report that is asked for while the loop stands is answered before its timer has run.

const RESOLUTION_MS = 10

/** Makes the function that says for how long the event loop was held up at most since it was called before, in seconds; what holds it up until this call counts. */
export function watchStalls (resolutionMs = RESOLUTION_MS): () => number {
  let lastMs = performance.now()
  let longestMs = 0
  const look = () => {
    const now = performance.now()
    longestMs = Math.max(longestMs, now - lastMs - resolutionMs)
    lastMs = now
  }
  setInterval(look, resolutionMs).unref()
  return () => {
    look()
    const seconds = longestMs / 1000
    longestMs = 0
    return seconds
  }
}
