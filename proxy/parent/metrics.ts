// Prometheus text of the counters, made on request. No label contains a host or anything else that a guest can choose.
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import type { AuditStore } from '../audit/store.ts'
import type { TracedRequests } from '../audit/traced.ts'
import type { Roster } from '../workers/roster.ts'
import type { WorkerReport } from '../workers/contract.ts'
import type { WorkerPool } from '../workers/pool.ts'
import type { Counters } from '../log/counters.ts'

export interface MetricsOptions {
  readonly counters: Counters
  readonly roster: Roster
  readonly pool: WorkerPool
  readonly store: AuditStore
  readonly traced: TracedRequests
}

/** Makes the function that renders all figures: those of the parent, and the sum of all workers. */
export function createMetrics ({ counters, roster, pool, store, traced }: MetricsOptions): () => Promise<string> {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const total = (name: string, help: string, read: () => number) => new Counter({
    name, help, registers: [registry], collect () { this.reset(); this.inc(read()) }
  })
  const present = (name: string, help: string, read: () => number) => new Gauge({ name, help, registers: [registry], collect () { this.set(read()) } })
  const byLabel = (name: string, help: string, label: string, read: () => ReadonlyMap<string, number>) => new Counter({
    name,
    help,
    labelNames: [label],
    registers: [registry],
    collect () {
      this.reset()
      for (const [value, count] of read()) this.inc({ [label]: value }, count)
    }
  })
  byLabel('berth_egress_requests_total', 'Lines of the audit log, by protocol', 'protocol', () => counters.requests)
  byLabel('berth_egress_refusals_total', 'What was refused or failed, by reason', 'reason', () => counters.refusals)
  total('berth_egress_guest_bytes_total', 'Bytes of bodies that guests sent', () => counters.bytesIn)
  total('berth_egress_origin_bytes_total', 'Bytes of bodies that origins sent', () => counters.bytesOut)
  total('berth_egress_injected_total', 'Credentials that were put into requests', () => counters.injected)
  total('berth_egress_echoes_replaced_total', 'Secrets that were taken out of answers', () => counters.echoesReplaced)
  total('berth_egress_exchange_faults_total', 'Exceptions inside of this program, each of which ended the request that it belonged to', () => counters.exchangeFaults)
  total('berth_egress_certificates_total', 'Certificates that were made', () => counters.certificates)
  total('berth_egress_origin_connections_total', 'Connections to origins', () => counters.originConnections)
  total('berth_egress_dns_queries_total', 'DNS queries', () => counters.dnsQueries)
  total('berth_egress_audit_dropped_total', 'Entries of the audit log that made room for later ones of their VM', () => store.dropped)
  total('berth_egress_audit_lost_total', 'Requests that could not be recorded', () => counters.auditLost)
  total('berth_egress_traces_dropped_total', 'Requests without a trace, since the server did not ask for them in time', () => traced.dropped)
  present('berth_egress_audit_bytes', 'Size of the audit log', () => store.bytes)
  present('berth_egress_vms', 'VMs that have a policy', () => roster.size)
  present('berth_egress_cut_off_vms', 'VMs without a way out because their traffic kept ending workers', () => [...roster.all()].filter(({ isCutOff }) => isCutOff).length)
  present('berth_egress_policy_revision', 'Revision that is enforced; -1 before the first', () => roster.revision ?? -1)
  const together = (read: (report: WorkerReport) => number) => () => pool.slots.reduce((sum, { lastReport }) => lastReport === undefined ? sum : sum + read(lastReport), 0)
  present('berth_egress_ready_certificates', 'Certificates that are kept ready', together(({ readyCertificates }) => readyCertificates))
  present('berth_egress_connections', 'Open connections of guests', together(({ connections }) => connections))
  present('berth_egress_requests_under_way', 'Requests that are under way', together(({ requests }) => requests))
  addWorkers(registry, pool)
  return async () => {
    await pool.report()
    return await registry.metrics()
  }
}

/** Adds the figures of each worker. */
function addWorkers (registry: Registry, pool: WorkerPool): void {
  const perWorker = (name: string, help: string, read: (slot: WorkerPool['slots'][number]) => number) => new Gauge({
    name,
    help,
    labelNames: ['worker'],
    registers: [registry],
    collect () {
      this.reset()
      for (const slot of pool.slots) this.set({ worker: slot.name }, read(slot))
    }
  })
  const totalPerWorker = (name: string, help: string, read: (slot: WorkerPool['slots'][number]) => number) => new Counter({
    name,
    help,
    labelNames: ['worker'],
    registers: [registry],
    collect () {
      this.reset()
      for (const slot of pool.slots) this.inc({ worker: slot.name }, read(slot))
    }
  })
  perWorker('berth_egress_worker_up', 'Whether a worker takes connections: 1 or 0', ({ isUp }) => isUp ? 1 : 0)
  totalPerWorker('berth_egress_worker_ends_total', 'How often a worker has ended without having been asked to', ({ ends }) => ends)
  perWorker('berth_egress_worker_waiting', 'Connections that wait for a worker', ({ waiting }) => waiting)
  perWorker('berth_egress_worker_resident_bytes', 'Memory of a worker', ({ lastReport }) => lastReport?.residentBytes ?? 0)
  perWorker('berth_egress_worker_stall_seconds', 'Longest time for which the event loop of a worker was held up since these figures were read before', slot => slot.takeStall())
  totalPerWorker('berth_egress_worker_cpu_seconds_total', 'Processor time of a worker', ({ lastReport }) => lastReport?.cpuSeconds ?? 0)
  perWorker('berth_egress_worker_pid', 'Process of a worker', ({ pid }) => pid ?? 0)
}
