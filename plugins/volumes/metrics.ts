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
  // Both figures of one reading come from one answer.
  let asked: Promise<VolumeUsage> | undefined
  const now = async (): Promise<VolumeUsage> => {
    asked ??= usage().finally(() => { asked = undefined })
    return await asked
  }
  registry.registerMetric(new Gauge({
    name: 'berth_volumes_bytes',
    help: 'Volumes of this host: their size, and what they take on disk',
    labelNames: ['kind'],
    registers: [],
    async collect () {
      const { sizeBytes, allocatedBytes } = await now()
      this.set({ kind: 'size' }, sizeBytes)
      this.set({ kind: 'allocated' }, allocatedBytes)
    }
  }))
  registry.registerMetric(new Gauge({
    name: 'berth_volumes',
    help: 'Volumes of this host',
    registers: [],
    async collect () { this.set((await now()).count) }
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
