// Leases that keep instances awake: sessions in the guest, and whatever else leads to it by other plugins. Kept in memory only, since what holds a lease ends with the server.
import type { InstanceLeases, Lease } from '../contract.ts'

export interface Leases extends InstanceLeases {
  /** The reasons that keep the instance awake now, each as often as it was taken; empty: none. */
  reasons (id: string): readonly string[]
  /** `performance.now()` of the last release; undefined: no lease of this instance was ever taken, or one is held. */
  freeSince (id: string): number | undefined
  /** To be called when the instance is deleted. */
  forget (id: string): void
}

interface Held {
  readonly reasons: Map<Lease, string>
  freeSince: number | undefined
}

/** @param changed is called after each take and release */
export function createLeases (changed: (id: string) => void = () => {}): Leases {
  const held = new Map<string, Held>()
  return {
    take (id, reason) {
      const entry = held.get(id) ?? { reasons: new Map<Lease, string>(), freeSince: undefined }
      held.set(id, entry)
      const lease: Lease = {
        release () {
          if (!entry.reasons.delete(lease)) return
          if (entry.reasons.size === 0) entry.freeSince = performance.now()
          changed(id)
        }
      }
      entry.reasons.set(lease, reason)
      entry.freeSince = undefined
      changed(id)
      return lease
    },
    reasons: (id) => [...held.get(id)?.reasons.values() ?? []],
    freeSince: (id) => held.get(id)?.freeSince,
    forget (id) { held.delete(id) }
  }
}
