// The metrics of pushes.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

export interface PushesMetrics {
  ended (result: 'success' | 'failed', seconds: number): void
}

/** @param queueLength is asked when the figures are read */
export function createPushesMetrics (registry: Registry, queueLength: () => number): PushesMetrics {
  const registers = [registry]
  const pushes = new Counter({ name: 'berth_pushes_total', help: 'Pushes of images that have ended, by result', labelNames: ['result'], registers })
  const duration = new Histogram({
    name: 'berth_pushes_duration_seconds',
    help: 'Time from the turn of a push to its end',
    labelNames: ['result'],
    buckets: [0.25, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 900],
    registers
  })
  registry.registerMetric(new Gauge({
    name: 'berth_pushes_queue_length',
    help: 'Pushes that wait for their turn',
    registers: [],
    collect () { this.set(queueLength()) }
  }))
  return {
    ended (result, seconds) {
      pushes.inc({ result })
      duration.observe({ result }, seconds)
    }
  }
}
