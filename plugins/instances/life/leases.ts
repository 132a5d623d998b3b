// Who keeps instances awake: sessions in the guest, and whatever other plugins lead to it. In memory alone, since what holds one ends with the server.
import type { InstanceLeases, Lease } from '../contract.ts'

export interface Leases extends InstanceLeases {
  /** What keeps it awake now, each reason as often as it was taken; empty: nothing. */
  reasons (id: string): readonly string[]
  /** `performance.now()` of the last release; undefined: none of this instance was ever taken, or one is held. */
  freeSince (id: string): number | undefined
  /** The instance is no more. */
  forget (id: string): void
}

interface Held {
  readonly reasons: Map<Lease, string>
  freeSince: number | undefined
}

/** @param changed is told after each take and release */
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
