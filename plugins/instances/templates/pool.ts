// The spare VMs that are ready to become instances. Each is in here, or somebody's, never both.
import type { Logger } from '../../../core/contracts/services.ts'
import type { Spare } from './contract.ts'

export interface SparePool {
  readonly size: number
  count (key: string): number
  /** Keeps it until it is taken, or has waited for too long, or its VM is not what it was. */
  put (spare: Spare): void
  /** The one that has waited longest, and is good. */
  take (key: string): Spare | undefined
  /** Ends the one that has waited longest, of any key but this. False when there is none. */
  endOldest (exceptKey?: string): Promise<boolean>
  /** Ends all, and every one that is put in later. */
  close (): Promise<void>
}

export function createSparePool (idleMs: number, log: Logger): SparePool {
  /** oldest first, with what lets go of each */
  const spares = new Map<Spare, () => void>()
  const ending = new Set<Promise<void>>()
  let closed = false

  function remove (spare: Spare): void {
    spares.get(spare)?.()
    spares.delete(spare)
  }

  function end (spare: Spare): Promise<void> {
    remove(spare)
    const ended = spare.end().finally(() => { ending.delete(ended) })
    ending.add(ended)
    return ended
  }

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
      }, idleMs)
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
    },
    take (key) {
      for (const spare of [...spares.keys()].filter((each) => each.key === key)) {
        remove(spare)
        if (spare.isGood) return spare
        void end(spare)
      }
      return undefined
    },
    async endOldest (exceptKey) {
      const oldest = [...spares.keys()].find(({ key }) => key !== exceptKey)
      if (oldest === undefined) return false
      await end(oldest)
      return true
    },
    async close () {
      closed = true
      for (const spare of [...spares.keys()]) void end(spare)
      await Promise.all(ending)
    }
  }
}
