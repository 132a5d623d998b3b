// Ends an archive whose sender keeps others waiting for their turn: it went away without a word, or sends next to nothing.
import type { Readable, Transform } from 'node:stream'

export interface PaceLimits {
  /** how long nothing at all may come */
  readonly patienceMs: number
  readonly bytesPerSecond: number
}

/** A minute without anything, or two at half of the pace. */
const PACE: PaceLimits = { patienceMs: 60_000, bytesPerSecond: 4096 }

const TICKS = 60

/**
 * Calls `ended` when the sender was waited for too long. Only the time counts in which everything that came was used up: a slow disk is not the sender's fault.
 * @param use what the source is piped into
 * @returns a function that stops this
 */
export function watchPace (source: Readable, use: Transform, ended: () => void, { patienceMs, bytesPerSecond }: PaceLimits = PACE): () => void {
  let waitedMs = 0
  const came = ({ length }: Buffer): void => { waitedMs = Math.max(0, waitedMs - length * 1000 / bytesPerSecond) }
  const tickMs = patienceMs / TICKS
  const timer = setInterval(() => {
    if (use.writableLength > 0 || use.readableLength > 0) return
    waitedMs += tickMs
    if (waitedMs >= patienceMs) ended()
  }, tickMs)
  source.on('data', came)
  return () => {
    clearInterval(timer)
    source.off('data', came)
  }
}
