// Measures for how long a worker's event loop is blocked.
// Node's monitorEventLoopDelay misses such times: after each reset it needs a whole interval before it measures, and a report requested while the loop is blocked is answered before its timer has run.

/** What is measured is too short by this at most. Ten milliseconds cost an idle worker more than a hundredth of a processor. */
const RESOLUTION_MS = 50

/** Makes a function that returns the longest time, in seconds, for which the event loop was blocked since its last call; a block that lasts until this call counts. */
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
