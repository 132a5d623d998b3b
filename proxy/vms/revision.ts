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
