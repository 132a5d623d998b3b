// What a worker enforces: the part of a revision that is about its VMs.
import type { TracingPolicy, VmPolicy } from '../contract/control.ts'

export interface WorkerRevision {
  readonly revision: number
  readonly denied: readonly string[]
  /** addresses of all VMs, also of other workers': no guest may reach them */
  readonly addresses: readonly string[]
  readonly tracing?: TracingPolicy
  readonly vms: readonly VmPolicy[]
}

/** What differs from the revision `base` in a worker. */
export interface WorkerChange {
  readonly base: number
  readonly revision: number
  /** absent: as before */
  readonly denied?: readonly string[]
  /** addresses of VMs that are new, also of other workers' */
  readonly addresses: readonly string[]
  /** addresses that have no VM any more */
  readonly freed: readonly string[]
  /** VMs of this worker with another policy than before */
  readonly vms: readonly VmPolicy[]
  /** addresses whose VM of before is not this worker's any more */
  readonly gone: readonly string[]
}
