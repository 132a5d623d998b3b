// The spare VMs that are ready to become instances. Each is either in this pool or somebody's, never both.
import type { Logger } from '../../../core/contracts/services.ts'
import { LONGEST_TIMER_MS } from '../../../core/jobs/longest-timer.ts'
import type { HostMemory } from '../../../core/process/host-memory.ts'
import { watchHostMemory } from '../reclaim/host-memory-watch.ts'
import type { Spare } from './contract.ts'

export interface SparePool {
  readonly size: number
  count (key: string): number
  /** Keeps the VM until it is taken, has waited for too long, or is no longer good. */
  put (spare: Spare): void
  /** Takes the good VM that has waited longest. */
  take (key: string): Spare | undefined
  /** Ends the VM that has waited longest, of any key but this. False when there is none. */
  endOldest (exceptKey?: string): Promise<boolean>
  /** Ends the VMs of a key. */
  endAll (key: string): Promise<void>
  /** Ends all VMs, and every VM that is put in later. */
  close (): Promise<void>
}

/** @param read the memory of the host: while it has little, spare VMs end */
export function createSparePool (idleMs: number, log: Logger, read?: () => Promise<HostMemory>): SparePool {
  /** oldest first, with a function that stops watching the VM */
  const spares = new Map<Spare, () => void>()
  const ending = new Set<Promise<void>>()
  let closed = false

  function remove (spare: Spare): void {
    spares.get(spare)?.()
    spares.delete(spare)
    if (spares.size === 0) watch.stop()
  }

  function end (spare: Spare): Promise<void> {
    remove(spare)
    const ended = spare.end().finally(() => { ending.delete(ended) })
    ending.add(ended)
    return ended
  }

  async function endOldest (exceptKey?: string): Promise<boolean> {
    const oldest = [...spares.keys()].find(({ key }) => key !== exceptKey)
    if (oldest === undefined) return false
    await end(oldest)
    return true
  }

  const watch = watchHostMemory(async () => await endOldest(), log, read)

  return {
    get size () { return spares.size },
    count: (key) => [...spares.keys()].filter((spare) => spare.key === key).length,
    put (spare) {
      if (closed || !spare.isGood) {
        void end(spare)
        return
      }
      const timer = setTimeout(() => {
        log.debug({ vm: spare.record.id }, 'a spare VM has waited for too long and ends')
        void end(spare)
      }, Math.min(idleMs, LONGEST_TIMER_MS))
      timer.unref()
      const unsubscribe = spare.vm.onState(({ status }) => {
        if (status === 'paused') return
        log.warn({ vm: spare.record.id, status }, 'a spare VM is not what it was, and ends')
        void end(spare)
      })
      spares.set(spare, () => {
        clearTimeout(timer)
        unsubscribe()
      })
      watch.start()
    },
    take (key) {
      for (const spare of [...spares.keys()].filter((each) => each.key === key)) {
        remove(spare)
        if (spare.isGood) return spare
        void end(spare)
      }
      return undefined
    },
    endOldest,
    async endAll (key) {
      await Promise.all([...spares.keys()].filter((spare) => spare.key === key).map(end))
    },
    async close () {
      closed = true
      for (const spare of [...spares.keys()]) void end(spare)
      await Promise.all(ending)
    }
  }
}
