// The part of a revision that concerns one worker's VMs.
import type { TracingPolicy, VmPolicy } from '../contract/control.ts'

export interface WorkerRevision {
  readonly revision: number
  readonly denied: readonly string[]
  /** addresses of all VMs, those of other workers included: no guest may reach them */
  readonly addresses: readonly string[]
  readonly tracing?: TracingPolicy
  readonly vms: readonly VmPolicy[]
}

/** The differences from the revision `base` for one worker. */
export interface WorkerChange {
  readonly base: number
  readonly revision: number
  /** absent: as before */
  readonly denied?: readonly string[]
  /** addresses of new VMs, those of other workers included */
  readonly addresses: readonly string[]
  /** addresses that have no VM any more */
  readonly freed: readonly string[]
  /** VMs of this worker with another policy than before */
  readonly vms: readonly VmPolicy[]
  /** addresses whose previous VM is no longer this worker's */
  readonly gone: readonly string[]
}
