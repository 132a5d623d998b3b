// The metrics of kept VMs.
import { Counter, Gauge, type Registry } from 'prom-client'
import { END_REASONS, type EndReason, type KeptVms } from './contract.ts'

/** `hot`: on the kept VM; `cold`: on another VM that was started on the image */
export type RestoreWay = 'hot' | 'cold'

export interface KeptMetrics {
  kept (): void
  ended (reason: EndReason): void
  restored (way: RestoreWay): void
}

/** @param count is called when the metrics are read */
export function createKeptMetrics (registry: Registry, count: KeptVms['count']): KeptMetrics {
  const registers = [registry]
  const kept = new Counter({ name: 'berth_instances_vms_kept_total', help: 'VMs that stayed, paused, after the standby of their instance', registers })
  const ended = new Counter({ name: 'berth_instances_kept_vms_ended_total', help: 'VMs that had been kept in standby and were ended, or ended, before a restore', labelNames: ['reason'], registers })
  const restored = new Counter({ name: 'berth_instances_restored_total', help: 'Restores of instances from standby, by whether the VM had been kept', labelNames: ['way'], registers })
  for (const reason of END_REASONS) ended.inc({ reason }, 0)
  for (const way of ['hot', 'cold'] as const) restored.inc({ way }, 0)
  registry.registerMetric(new Gauge({ name: 'berth_instances_kept_vms', help: 'VMs that are kept in standby now', registers: [], collect () { this.set(count().vms) } }))
  registry.registerMetric(new Gauge({ name: 'berth_instances_kept_vms_memory_bytes', help: 'Memory of their guests', registers: [], collect () { this.set(count().memoryBytes) } }))
  return {
    kept () { kept.inc() },
    ended (reason) { ended.inc({ reason }) },
    restored (way) { restored.inc({ way }) }
  }
}
