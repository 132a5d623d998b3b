// The metrics of devices.
import { Gauge, type Registry } from 'prom-client'
import type { DeviceRecord } from './record.ts'

/** @param all is called when the metrics are read */
export function createDeviceMetrics (registry: Registry, all: () => Promise<readonly DeviceRecord[]>): void {
  registry.registerMetric(new Gauge({
    name: 'berth_devices',
    help: 'Registered devices of this host, by type, and by whether an instance has them',
    labelNames: ['type', 'attached'],
    registers: [],
    async collect () {
      this.reset()
      for (const { type, instanceId } of await all()) this.inc({ type, attached: instanceId === null ? 'false' : 'true' })
    }
  }))
}
