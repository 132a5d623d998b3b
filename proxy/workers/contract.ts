// The messages between the proxy's parent and its workers, over the channel of node:child_process.
//
// The parent takes connections, policies and queries, and never reads a byte that a guest or an origin sent. VMs are divided between workers by their addresses: a worker gets their
// connections, their policies and their secrets, and writes their log lines to the parent over a pipe (`AUDIT_DESCRIPTOR`). It ends with its parent.
import type { ProxyConfig } from '../config/schema.ts'
import type { GuestWay } from '../gate/admit.ts'
import type { CounterValues } from '../log/counters.ts'
import type { WorkerChange, WorkerRevision } from '../vms/revision.ts'

export type ToWorker =
  | { readonly type: 'setup', readonly config: ProxyConfig }
  | { readonly type: 'policy', readonly id: number, readonly revision: WorkerRevision }
  | { readonly type: 'change', readonly id: number, readonly change: WorkerChange }
  /** comes with a socket; `vm` had the source address when the connection was taken */
  | { readonly type: 'connection', readonly way: GuestWay, readonly vm: string, readonly epoch: string }
  | { readonly type: 'report', readonly id: number }
  /** Requests that are under way may finish; the worker ends after that. */
  | { readonly type: 'drain' }

export type FromWorker =
  /** the worker has its key and waits for a policy */
  | { readonly type: 'ready' }
  /** the answer to the message with this number: a `policy` or a `change` is in force, or a `report` was sent */
  | { readonly type: 'enforced', readonly id: number }
  | { readonly type: 'report', readonly id: number, readonly report: WorkerReport }

export interface WorkerReport {
  /** counts since the previous report */
  readonly counted: CounterValues
  readonly connections: number
  readonly requests: number
  readonly readyCertificates: number
  readonly residentBytes: number
  /** the longest time for which the event loop was blocked since the previous report */
  readonly stallSeconds: number
  /** since the worker's start */
  readonly cpuSeconds: number
  /** bytes of log lines that the worker has written to the pipe since its start */
  readonly auditBytes: number
  /** VMs that have something open */
  readonly active: readonly string[]
}

/** the descriptor that a worker writes its log lines to */
export const AUDIT_DESCRIPTOR = 4
