// The metrics of events.
import { Gauge, type Registry } from 'prom-client'

/** @param streams is asked when the figures are read */
export function createEventsMetrics (registry: Registry, streams: () => number): void {
  registry.registerMetric(new Gauge({
    name: 'berth_events_streams',
    help: 'Streams of events that are open',
    registers: [],
    collect () { this.set(streams()) }
  }))
}
