// Collects when keys were used and writes it every few seconds: one write per request would cost more than the request.
import type { Logger } from '../contracts/services.ts'

/** How long uses are collected. */
const DELAY_MS = 15_000

export interface KeyUses {
  note (id: string, at: number): void
  /** Writes what is collected now. */
  flush (): Promise<void>
}

export function createKeyUses (write: (lastUsed: ReadonlyMap<string, number>) => Promise<void>, log: Logger): KeyUses {
  let uses = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined

  const flush = async (): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    if (uses.size === 0) return
    const batch = uses
    uses = new Map()
    try {
      await write(batch)
    } catch (error) {
      // only the time of the last use is lost
      log.warn({ err: error }, 'the last use of API keys could not be stored')
    }
  }

  return {
    note (id, at) {
      uses.set(id, at)
      timer ??= setTimeout(() => { void flush() }, DELAY_MS).unref()
    },
    flush
  }
}
