// Prometheus text of the counters, made on request. No label contains a host or anything else that a guest can choose.
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import { FIGURES, type FigureName } from '../contract/figures.ts'
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

type LabelledName = { [N in FigureName]: (typeof FIGURES)[N] extends { readonly label: string } ? N : never }[FigureName]

/** Makes the function that renders all figures: those of the parent, and the sum of all workers. */
export function createMetrics ({ counters, roster, pool, store, traced }: MetricsOptions): () => Promise<string> {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const total = (name: FigureName, read: () => number) => new Counter({
    name, help: FIGURES[name].help, registers: [registry], collect () { this.reset(); this.inc(read()) }
  })
  const present = (name: FigureName, read: () => number) => new Gauge({ name, help: FIGURES[name].help, registers: [registry], collect () { this.set(read()) } })
  const byLabel = (name: LabelledName, read: () => ReadonlyMap<string, number>) => new Counter({
    name,
    help: FIGURES[name].help,
    labelNames: [FIGURES[name].label],
    registers: [registry],
    collect () {
      this.reset()
      for (const [value, count] of read()) this.inc({ [FIGURES[name].label]: value }, count)
    }
  })
  byLabel('berth_egress_requests_total', () => counters.requests)
  byLabel('berth_egress_refusals_total', () => counters.refusals)
  total('berth_egress_guest_bytes_total', () => counters.bytesIn)
  total('berth_egress_origin_bytes_total', () => counters.bytesOut)
  total('berth_egress_injected_total', () => counters.injected)
  total('berth_egress_echoes_replaced_total', () => counters.echoesReplaced)
  total('berth_egress_exchange_faults_total', () => counters.exchangeFaults)
  total('berth_egress_certificates_total', () => counters.certificates)
  total('berth_egress_origin_connections_total', () => counters.originConnections)
  total('berth_egress_dns_queries_total', () => counters.dnsQueries)
  total('berth_egress_audit_dropped_total', () => store.dropped)
  total('berth_egress_audit_lost_total', () => counters.auditLost)
  total('berth_egress_traces_dropped_total', () => traced.dropped)
  present('berth_egress_audit_bytes', () => store.bytes)
  present('berth_egress_vms', () => roster.size)
  present('berth_egress_cut_off_vms', () => [...roster.all()].filter(({ isCutOff }) => isCutOff).length)
  present('berth_egress_policy_revision', () => roster.revision ?? -1)
  const together = (read: (report: WorkerReport) => number) => () => pool.slots.reduce((sum, { lastReport }) => lastReport === undefined ? sum : sum + read(lastReport), 0)
  present('berth_egress_ready_certificates', together(({ readyCertificates }) => readyCertificates))
  present('berth_egress_connections', together(({ connections }) => connections))
  present('berth_egress_requests_under_way', together(({ requests }) => requests))
  addWorkers(registry, pool)
  return async () => {
    await pool.report()
    return await registry.metrics()
  }
}

/** Adds the figures of each worker. */
function addWorkers (registry: Registry, pool: WorkerPool): void {
  const perWorker = (name: LabelledName, read: (slot: WorkerPool['slots'][number]) => number) => new Gauge({
    name,
    help: FIGURES[name].help,
    labelNames: [FIGURES[name].label],
    registers: [registry],
    collect () {
      this.reset()
      for (const slot of pool.slots) this.set({ [FIGURES[name].label]: slot.name }, read(slot))
    }
  })
  const totalPerWorker = (name: LabelledName, read: (slot: WorkerPool['slots'][number]) => number) => new Counter({
    name,
    help: FIGURES[name].help,
    labelNames: [FIGURES[name].label],
    registers: [registry],
    collect () {
      this.reset()
      for (const slot of pool.slots) this.inc({ [FIGURES[name].label]: slot.name }, read(slot))
    }
  })
  perWorker('berth_egress_worker_up', ({ isUp }) => isUp ? 1 : 0)
  totalPerWorker('berth_egress_worker_ends_total', ({ ends }) => ends)
  perWorker('berth_egress_worker_waiting', ({ waiting }) => waiting)
  perWorker('berth_egress_worker_resident_bytes', ({ lastReport }) => lastReport?.residentBytes ?? 0)
  perWorker('berth_egress_worker_stall_seconds', slot => slot.takeStall())
  totalPerWorker('berth_egress_worker_cpu_seconds_total', ({ lastReport }) => lastReport?.cpuSeconds ?? 0)
  perWorker('berth_egress_worker_pid', ({ pid }) => pid ?? 0)
}
