// Watches the memory of the host, and gives something up while little is left.
import type { Logger } from '../../../core/contracts/services.ts'
import { memoryOfHost, type HostMemory } from '../../../core/process/host-memory.ts'
import { isShort } from './host-memory.ts'

const LOOK_MS = 1000

export interface HostMemoryWatch {
  /** Does nothing when the watch is on already. */
  start (): void
  stop (): void
}

/** @param giveUpOne resolves with false when nothing more can be given up @param read the memory of the host */
export function watchHostMemory (giveUpOne: () => Promise<boolean>, log: Pick<Logger, 'error'>, read: () => Promise<HostMemory> = memoryOfHost): HostMemoryWatch {
  let timer: NodeJS.Timeout | undefined
  let isLooking = false

  async function look (): Promise<void> {
    if (isLooking) return
    isLooking = true
    try {
      while (isShort(await read()) && await giveUpOne());
    } finally {
      isLooking = false
    }
  }

  return {
    start () {
      timer ??= setInterval(() => { look().catch((error: unknown) => { log.error({ err: error }, 'how much memory the host has could not be found out') }) }, LOOK_MS).unref()
    },
    stop () {
      clearInterval(timer)
      timer = undefined
    }
  }
}
