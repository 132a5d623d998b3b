// Keeps the journal within its limits.
import type { Logger } from '../../../core/contracts/services.ts'
import type { EventJournal } from './journal.ts'

const INTERVAL_MS = 60_000
/** part of the kept rows that may be added before the next check */
const PART = 10
const LOOK_MS = 1000

export interface Bounds { readonly maxRows: number, readonly maxAgeMs: number }

/** Returns a function that ends it. */
export function startRetention (journal: EventJournal, { maxRows, maxAgeMs }: Bounds, log: Logger): () => Promise<void> {
  let last = -Infinity
  let running = Promise.resolve()
  const timer = setInterval(() => {
    if (journal.written < maxRows / PART && performance.now() - last < INTERVAL_MS) return
    last = performance.now()
    running = running.then(async () => {
      await journal.trim(maxRows, maxAgeMs)
    }).catch((error: unknown) => { log.warn({ err: error }, 'old events could not be removed; it is tried again') })
  }, LOOK_MS).unref()
  return async () => {
    clearInterval(timer)
    await running
  }
}
