// What the proxy's parent and its workers say to each other, over the channel of node:child_process.
//
// The parent takes connections, policies and questions, and never reads a byte that a guest or an origin sent. A worker has the VMs whose addresses are its own: it gets their
// connections, their policies and their secrets, and writes their log lines to the parent over a pipe (`AUDIT_DESCRIPTOR`). It ends with its parent.
import type { ProxyConfig } from '../config/schema.ts'
import type { GuestWay } from '../gate/admit.ts'
import type { CounterValues } from '../log/counters.ts'
import type { WorkerChange, WorkerRevision } from '../vms/revision.ts'

export type ToWorker =
  | { readonly type: 'setup', readonly config: ProxyConfig }
  | { readonly type: 'policy', readonly id: number, readonly revision: WorkerRevision }
  | { readonly type: 'change', readonly id: number, readonly change: WorkerChange }
  /** comes with a socket; the VM that had the address when it was taken */
  | { readonly type: 'connection', readonly way: GuestWay, readonly vm: string, readonly epoch: string }
  | { readonly type: 'report', readonly id: number }
  /** What is under way may finish; it ends after that. */
  | { readonly type: 'drain' }

export type FromWorker =
  /** it has its key and waits for a policy */
  | { readonly type: 'ready' }
  /** a `policy` or a `change` is in force, or a `report` was asked for: the answer to the question of that number */
  | { readonly type: 'enforced', readonly id: number }
  | { readonly type: 'report', readonly id: number, readonly report: WorkerReport }

export interface WorkerReport {
  /** what was counted since the report before */
  readonly counted: CounterValues
  readonly connections: number
  readonly requests: number
  readonly readyCertificates: number
  readonly residentBytes: number
  /** the longest time for which its event loop was held up since the report before */
  readonly stallSeconds: number
  /** since the worker's start */
  readonly cpuSeconds: number
  /** bytes of log lines that it has written to the pipe since its start */
  readonly auditBytes: number
  /** VMs that have something open */
  readonly active: readonly string[]
}

/** where a worker writes its log lines to */
export const AUDIT_DESCRIPTOR = 4
