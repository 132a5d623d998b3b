// Prometheus text from the plain figures, put together only when somebody asks. No label holds a host or anything else that a guest can choose.
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import type { ContextCache } from '../tls/context-cache.ts'
import type { VmTable } from '../vms/table.ts'
import type { Counters } from './counters.ts'

/** Makes the function that renders all figures. */
export function createMetrics (counters: Counters, table: VmTable, contexts: ContextCache): () => Promise<string> {
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
  total('berth_egress_certificates_total', 'Certificates that were made', () => counters.certificates)
  total('berth_egress_origin_connections_total', 'Connections to origins', () => counters.originConnections)
  total('berth_egress_dns_queries_total', 'DNS queries', () => counters.dnsQueries)
  present('berth_egress_vms', 'VMs that have a policy', () => table.size)
  present('berth_egress_policy_revision', 'Revision that is enforced; -1 before the first', () => table.revision ?? -1)
  present('berth_egress_ready_certificates', 'Certificates that are kept ready', () => contexts.size)
  present('berth_egress_connections', 'Open connections of guests', () => sum(table, vm => vm.connections.size))
  present('berth_egress_requests_under_way', 'Requests that are under way', () => sum(table, vm => vm.exchanges.size))
  return async () => await registry.metrics()
}

function sum (table: VmTable, size: (vm: ReturnType<VmTable['all']> extends Iterable<infer V> ? V : never) => number): number {
  let total = 0
  for (const vm of table.all()) total += size(vm)
  return total
}
