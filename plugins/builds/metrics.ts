// The metrics of builds.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { UNFINISHED, type BuildStatus, type FinalStatus } from './record.ts'

export interface BuildMetrics {
  ended (status: FinalStatus): void
  took (status: FinalStatus, seconds: number): void
}

/** Called when the figures are read. */
export interface BuildCounts {
  /** the status of each unfinished build */
  unfinished (): Promise<readonly BuildStatus[]>
  builders (): Promise<number>
}

export function createBuildMetrics (registry: Registry, counts: BuildCounts): BuildMetrics {
  const registers = [registry]
  const ended = new Counter({ name: 'berth_builds_ended_total', help: 'Builds that are over, by how they ended', labelNames: ['status'], registers })
  const durations = new Histogram({
    name: 'berth_builds_duration_seconds',
    help: 'Time from the start of a build to its end',
    labelNames: ['status'],
    buckets: [1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600],
    registers
  })
  registry.registerMetric(new Gauge({
    name: 'berth_builds_builders',
    help: 'Builders of this host',
    registers: [],
    async collect () { this.set(await counts.builders()) }
  }))
  registry.registerMetric(new Gauge({
    name: 'berth_builds',
    help: 'Builds of this host that are not over',
    labelNames: ['status'],
    registers: [],
    async collect () {
      const statuses = await counts.unfinished()
      for (const status of UNFINISHED) this.set({ status }, statuses.filter((each) => each === status).length)
    }
  }))
  return {
    ended: (status) => { ended.inc({ status }) },
    took: (status, seconds) => { durations.observe({ status }, seconds) }
  }
}
