// What operators see of pulls.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

export interface ImagesMetrics {
  pulled (result: 'success' | 'failed' | 'cancelled', seconds: number): void
}

export function createImagesMetrics (registry: Registry, queueLength: () => number): ImagesMetrics {
  const pulls = new Counter({ name: 'berth_images_pulls_total', help: 'Image pulls that have ended, by result', labelNames: ['result'], registers: [registry] })
  const duration = new Histogram({
    name: 'berth_images_pull_duration_seconds',
    help: 'Time from the start of a pull to the finished root file system',
    labelNames: ['result'],
    buckets: [0.25, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 900],
    registers: [registry]
  })
  const length = new Gauge({
    name: 'berth_images_pull_queue_length',
    help: 'Pulls that wait for their turn',
    registers: [registry],
    collect () { length.set(queueLength()) }
  })
  return {
    pulled (result, seconds) {
      pulls.inc({ result })
      duration.observe({ result }, seconds)
    }
  }
}
