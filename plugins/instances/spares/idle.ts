// Knows when no VM is coming up that somebody waits for, so that work for later creates does not slow those of now.
import type { EventBus } from '../../../core/contracts/services.ts'
import { Signal } from '../../../core/jobs/signal.ts'
import type { InstanceSet } from '../model/instance-set.ts'

/** A guest that has been booting for longer than this may never be ready, and is not waited for. */
const LONGEST_BOOT_MS = 30_000

/** A start in the future was noted before the clock was put back, so its time is unknown. */
function mayStillBoot (startedAt: number): boolean {
  const age = Date.now() - startedAt
  return age >= 0 && age < LONGEST_BOOT_MS
}

export interface Idle {
  /** The host does not count as idle while `work` goes on. */
  during<T> (work: () => Promise<T>): Promise<T>
  /** Resolves once no VM has been coming up for `quietMs`. Throws when the signal aborts. */
  wait (quietMs: number, signal: AbortSignal): Promise<void>
}

export function createIdle (events: EventBus, instances: InstanceSet): Idle {
  let working = 0
  const bells = new Set<Signal>()
  const ring = (): void => { for (const bell of bells) bell.notify() }
  const isBusy = (): boolean => working > 0 || instances.all().some(({ state, record }) => state === 'Initializing' && mayStillBoot(record.startedAt ?? 0))
  return {
    async during (work) {
      working++
      ring()
      try {
        return await work()
      } finally {
        working--
        ring()
      }
    },
    async wait (quietMs, signal) {
      const bell = new Signal()
      bells.add(bell)
      const unsubscribe = events.on('instance.state', ring)
      try {
        for (let isQuiet = false; !isQuiet;) {
          const busy = isBusy()
          const rung = await bell.wait(busy ? LONGEST_BOOT_MS : quietMs, signal)
          signal.throwIfAborted()
          isQuiet = !busy && !rung
        }
      } finally {
        unsubscribe()
        bells.delete(bell)
      }
    }
  }
}
