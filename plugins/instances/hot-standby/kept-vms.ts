// The kept VMs, oldest first. Each VM is either in this set or somebody's, never both.
import type { Logger } from '../../../core/contracts/services.ts'
import { LONGEST_TIMER_MS } from '../../../core/jobs/longest-timer.ts'
import type { Settings } from '../config.ts'
import type { EndReason, Kept, KeptVms } from './contract.ts'
import { watchHostMemory } from '../reclaim/host-memory-watch.ts'
import type { KeptMetrics } from './metrics.ts'

export interface KeptVmsOptions {
  readonly settings: Settings['hotStandby']
  readonly log: Logger
  readonly metrics: KeptMetrics
  /** Ends the VM and disconnects it. Never rejects. */
  readonly end: (kept: Kept) => Promise<void>
}

export function createKeptVms ({ settings, log, metrics, end: endVm }: KeptVmsOptions): KeptVms {
  const { maxCount, maxBytes, keepMs } = settings
  /** by instance, with a function that stops watching the VM */
  const all = new Map<string, { readonly kept: Kept, readonly letGo: () => void }>()
  /** by instance */
  const ending = new Map<string, Promise<void>>()
  let closed = false

  const watch = watchHostMemory(async () => await endOldest('pressure'), log)

  function take (id: string): Kept | undefined {
    const found = all.get(id)
    found?.letGo()
    all.delete(id)
    if (all.size === 0) watch.stop()
    return found?.kept
  }

  function giveUp (kept: Kept, reason: EndReason): Promise<void> {
    const { id } = kept.record
    log.debug({ instance: id, reason }, 'a VM that was kept in standby ends')
    metrics.ended(reason)
    const ended = endVm(kept).finally(() => { if (ending.get(id) === ended) ending.delete(id) })
    ending.set(id, ended)
    return ended
  }

  async function end (id: string, reason: EndReason): Promise<void> {
    const kept = take(id)
    await (kept === undefined ? ending.get(id) : giveUp(kept, reason))
  }

  async function endOldest (reason: EndReason): Promise<boolean> {
    const [oldest] = all.keys()
    if (oldest === undefined) return false
    await end(oldest, reason)
    return true
  }

  const memoryOfAll = (): number => [...all.values()].reduce((sum, { kept }) => sum + kept.memoryBytes, 0)

  async function shrinkTo (memoryBytes: number, reason: EndReason): Promise<void> {
    while (memoryOfAll() > memoryBytes && await endOldest(reason));
  }

  async function fit (): Promise<void> {
    while (all.size > maxCount && await endOldest('count'));
    await shrinkTo(maxBytes, 'size')
  }

  return {
    takes: (memoryBytes) => !closed && maxCount > 0 && keepMs > 0 && memoryBytes <= maxBytes,
    put (kept) {
      const { record: { id }, vm } = kept
      if (closed || vm.state.status !== 'paused') {
        void giveUp(kept, closed ? 'closed' : 'died')
        return
      }
      const timer = setTimeout(() => { void end(id, 'time') }, Math.min(keepMs, LONGEST_TIMER_MS)).unref()
      const unsubscribe = vm.onState(({ status }) => { if (status !== 'paused') void end(id, 'died') })
      all.set(id, { kept, letGo: () => { clearTimeout(timer); unsubscribe() } })
      metrics.kept()
      watch.start()
      void fit()
    },
    find: (id) => all.get(id)?.kept,
    take,
    giveUp,
    end,
    endOldest,
    async endAll (reason) { await Promise.all([...all.keys()].map(async (id) => { await end(id, reason) })) },
    shrinkTo,
    count: () => ({ vms: all.size, memoryBytes: memoryOfAll() }),
    async close () {
      closed = true
      await Promise.all([...all.keys()].map(async (id) => { await end(id, 'closed') }))
      await Promise.all(ending.values())
      watch.stop()
    }
  }
}
