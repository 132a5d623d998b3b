// The metrics of webhooks.
import { Counter, Gauge, type Registry } from 'prom-client'
import type { WebhookStatus } from './record.ts'

export interface WebhooksMetrics {
  delivered (): void
  failed (): void
}

/** @param counts is asked when the figures are read */
export function createWebhooksMetrics (registry: Registry, counts: () => Promise<ReadonlyMap<WebhookStatus, number>>): WebhooksMetrics {
  const deliveries = new Counter({ name: 'berth_webhooks_deliveries_total', help: 'Attempts to deliver an event to a webhook, by result', labelNames: ['result'], registers: [registry] })
  registry.registerMetric(new Gauge({
    name: 'berth_webhooks',
    help: 'Webhooks, by status',
    labelNames: ['status'],
    registers: [],
    async collect () {
      const found = await counts()
      for (const status of ['active', 'failing', 'dead'] as const) this.set({ status }, found.get(status) ?? 0)
    }
  }))
  return {
    delivered () { deliveries.inc({ result: 'success' }) },
    failed () { deliveries.inc({ result: 'failed' }) }
  }
}
