// The metrics that this plugin publishes.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { traced } from '../../core/tracing/span.ts'
import type { InstanceState } from './contract.ts'
import { STATES } from './api/schemas.ts'

export type TimedOperation = 'create' | 'start' | 'stop' | 'update' | 'standby' | 'restore' | 'fork' | 'delete' | 'compress' | 'expand' | 'capture' | 'replace' | 'attach-volume' | 'detach-volume'

export interface InstanceMetrics {
  moved (from: InstanceState, to: InstanceState): void
  /** Measures an operation that succeeds, and makes it a span of its request's trace. */
  timed<T> (operation: TimedOperation, work: () => Promise<T>): Promise<T>
  execStarted (): void
  execBytes (direction: 'in' | 'out', bytes: number): void
  cpStarted (direction: string): void
  cpBytes (direction: 'to' | 'from', bytes: number): void
}

/** @param states is read when the metrics are read, to count instances */
export function createMetrics (registry: Registry, states: () => Iterable<InstanceState>): InstanceMetrics {
  const registers = [registry]
  const durations = new Histogram({
    name: 'berth_instances_operation_duration_seconds',
    help: 'Duration of successful operations on instances',
    labelNames: ['operation'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30],
    registers
  })
  const transitions = new Counter({ name: 'berth_instances_state_transitions_total', help: 'Changes of state', labelNames: ['from', 'to'], registers })
  const execSessions = new Counter({ name: 'berth_exec_sessions_total', help: 'Exec sessions started', registers })
  const execBytes = new Counter({ name: 'berth_exec_bytes_total', help: 'Bytes of exec sessions; in is towards the guest', labelNames: ['direction'], registers })
  const cpSessions = new Counter({ name: 'berth_cp_sessions_total', help: 'Copy sessions started', labelNames: ['direction'], registers })
  const cpBytes = new Counter({ name: 'berth_cp_bytes_total', help: 'Bytes of file content copied', labelNames: ['direction'], registers })
  registry.registerMetric(new Gauge({
    name: 'berth_instances',
    help: 'Instances of this host by state',
    labelNames: ['state'],
    registers: [],
    collect () {
      const counts = new Map<InstanceState, number>(STATES.map((state) => [state, 0]))
      for (const state of states()) counts.set(state, (counts.get(state) ?? 0) + 1)
      for (const [state, count] of counts) this.set({ state }, count)
    }
  }))
  return {
    moved (from, to) { transitions.inc({ from, to }) },
    async timed (operation, work) {
      const stop = durations.startTimer({ operation })
      const result = await traced(`instance ${operation}`, {}, work)
      stop()
      return result
    },
    execStarted () { execSessions.inc() },
    execBytes (direction, bytes) { execBytes.inc({ direction }, bytes) },
    cpStarted (direction) { cpSessions.inc({ direction }) },
    cpBytes (direction, bytes) { cpBytes.inc({ direction }, bytes) }
  }
}
