// The metrics of volumes.
import { Gauge, Histogram, type Registry } from 'prom-client'
import type { VolumeUsage } from '../instances/volumes/contract.ts'

export interface VolumeMetrics {
  /** Measures the making of a volume, when it succeeds. */
  timed<T> (source: 'empty' | 'archive', work: () => Promise<T>): Promise<T>
}

/** @param usage is called when the metrics are read */
export function createVolumeMetrics (registry: Registry, usage: () => Promise<VolumeUsage>): VolumeMetrics {
  const registers = [registry]
  const durations = new Histogram({
    name: 'berth_volumes_create_duration_seconds',
    help: 'Duration of making a volume',
    labelNames: ['source'],
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300],
    registers
  })
  const bytes = new Gauge({ name: 'berth_volumes_bytes', help: 'Volumes of this host: their size, and what they take on disk', labelNames: ['kind'], registers })
  registry.registerMetric(new Gauge({
    name: 'berth_volumes',
    help: 'Volumes of this host',
    registers: [],
    async collect () {
      const { count, sizeBytes, allocatedBytes } = await usage()
      this.set(count)
      bytes.set({ kind: 'size' }, sizeBytes)
      bytes.set({ kind: 'allocated' }, allocatedBytes)
    }
  }))
  return {
    async timed (source, work) {
      const stop = durations.startTimer({ source })
      const result = await work()
      stop()
      return result
    }
  }
}
