// The metrics of ingresses.
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Decision } from './decide/decide.ts'

export interface IngressMetrics {
  started (): void
  /** a certificate was requested from an ACME authority */
  asked (outcome: 'issued' | 'refused'): void
  decided (kind: Decision['kind'] | 'failed'): void
}

/** Each is called when its figure is read. */
export interface IngressFigures {
  isUp (): boolean
  ingresses (): number
  /** of nginx; undefined when it does not answer */
  traffic (): Promise<{ readonly connections: number, readonly requests: number } | undefined>
  /** epoch `ms` at which the first certificate ends */
  firstEnd (): number | undefined
}

export function createIngressMetrics (registry: Registry, { isUp, ingresses, traffic, firstEnd }: IngressFigures): IngressMetrics {
  const registers = [registry]
  const starts = new Counter({ name: 'berth_ingress_starts_total', help: 'Starts of nginx', registers })
  const decisions = new Counter({ name: 'berth_ingress_decisions_total', help: 'Questions of nginx where a request goes; what it has kept it does not ask', labelNames: ['outcome'], registers })
  const orders = new Counter({ name: 'berth_ingress_certificate_orders_total', help: 'Certificates that an ACME authority was asked for', labelNames: ['outcome'], registers })
  const gauge = (name: string, help: string, read: () => number): void => {
    registry.registerMetric(new Gauge({ name, help, registers: [], collect () { this.set(read()) } }))
  }
  gauge('berth_ingress_up', 'Whether nginx runs', () => isUp() ? 1 : 0)
  gauge('berth_ingress_ingresses', 'Ingresses of this host', ingresses)
  registry.registerMetric(new Gauge({
    name: 'berth_ingress_connections',
    help: 'Open connections of clients',
    registers: [],
    async collect () {
      const now = await traffic()
      this.remove()
      if (now !== undefined) this.set(now.connections)
    }
  }))
  // nginx counts from its start: a smaller number than before is a restart, as for any counter. So there is none, and no 0, while it does not answer.
  registry.registerMetric(new Counter({
    name: 'berth_ingress_requests_total',
    help: 'Requests of clients since nginx has started',
    registers: [],
    async collect () {
      const now = await traffic()
      this.remove()
      if (now !== undefined) this.inc(now.requests)
    }
  }))
  gauge('berth_ingress_certificate_end_timestamp_seconds', 'When the first of the certificates ends, as Unix time; 0 while there is none', () => (firstEnd() ?? 0) / 1000)
  return {
    started () { starts.inc() },
    asked (outcome) { orders.inc({ outcome }) },
    decided (outcome) { decisions.inc({ outcome }) }
  }
}
