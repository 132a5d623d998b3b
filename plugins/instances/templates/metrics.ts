// The metrics about how instances come up.
import { Counter, Gauge, type Registry } from 'prom-client'

/** `spare`: from a spare VM; `clone`: as a clone of a template; `boot`: by a boot of its own */
export type CreateWay = 'spare' | 'clone' | 'boot'

export interface TemplateMetrics {
  made (way: CreateWay): void
}

/** @param count is called when the metrics are read */
export function createTemplateMetrics (registry: Registry, count: () => { readonly templates: number, readonly spares: number }): TemplateMetrics {
  const registers = [registry]
  const creates = new Counter({ name: 'berth_instances_created_total', help: 'Instances created, by what their VMs were made of', labelNames: ['way'], registers })
  registry.registerMetric(new Gauge({ name: 'berth_instances_templates', help: 'Templates on this host', registers: [], collect () { this.set(count().templates) } }))
  registry.registerMetric(new Gauge({ name: 'berth_instances_spares', help: 'Spare VMs that are ready to become instances', registers: [], collect () { this.set(count().spares) } }))
  return { made (way) { creates.inc({ way }) } }
}
