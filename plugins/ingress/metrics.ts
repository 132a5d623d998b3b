// What operators see of ingresses.
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Decision } from './decide/decide.ts'

export interface IngressMetrics {
  started (): void
  /** an ACME authority was asked for a certificate */
  asked (isThere: boolean): void
  decided (kind: Decision['kind'] | 'failed'): void
}

export interface IngressFigures {
  readonly isUp: boolean
  readonly ingresses: number
  /** of nginx; undefined when it does not answer */
  readonly traffic: { readonly connections: number, readonly requests: number } | undefined
  /** epoch `ms` at which the first certificate ends */
  readonly firstEnd: number | undefined
}

/** @param figures are asked for when they are read */
export function createIngressMetrics (registry: Registry, figures: () => Promise<IngressFigures>): IngressMetrics {
  const registers = [registry]
  const starts = new Counter({ name: 'berth_ingress_starts_total', help: 'Starts of nginx', registers })
  const decisions = new Counter({ name: 'berth_ingress_decisions_total', help: 'Questions of nginx where a request goes; what it has kept it does not ask', labelNames: ['outcome'], registers })
  const up = new Gauge({ name: 'berth_ingress_up', help: 'Whether nginx runs', registers })
  const connections = new Gauge({ name: 'berth_ingress_connections', help: 'Open connections of clients', registers })
  const requests = new Gauge({ name: 'berth_ingress_requests', help: 'Requests of clients since nginx has started', registers })
  const orders = new Counter({ name: 'berth_ingress_certificate_orders_total', help: 'Certificates that an ACME authority was asked for', labelNames: ['outcome'], registers })
  const ends = new Gauge({ name: 'berth_ingress_certificate_ends_seconds', help: 'When the first of the certificates ends, as Unix time; 0 while there is none', registers })
  registry.registerMetric(new Gauge({
    name: 'berth_ingress_ingresses',
    help: 'Ingresses of this host',
    registers: [],
    async collect () {
      const { isUp, ingresses, traffic, firstEnd = 0 } = await figures()
      this.set(ingresses)
      up.set(isUp ? 1 : 0)
      connections.set(traffic?.connections ?? 0)
      requests.set(traffic?.requests ?? 0)
      ends.set(firstEnd / 1000)
    }
  }))
  return {
    started () { starts.inc() },
    asked (isThere) { orders.inc({ outcome: isThere ? 'issued' : 'refused' }) },
    decided (outcome) { decisions.inc({ outcome }) }
  }
}
