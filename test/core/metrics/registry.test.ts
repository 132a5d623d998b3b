import t from 'tap'
import { Counter } from 'prom-client'
import { createMetrics } from '../../../core/metrics/registry.ts'

t.test('the metrics of the process are collected once, however many servers it has; what a server adds is its own', async (t) => {
  const [one, other] = [createMetrics(), createMetrics()]
  for (const name of ['nodejs_gc_duration_seconds', 'nodejs_eventloop_lag_seconds', 'process_resident_memory_bytes']) {
    t.ok(one.getSingleMetric(name), name)
    t.equal(one.getSingleMetric(name), other.getSingleMetric(name), name)
  }
  new Counter({ name: 'things_total', help: 'Things.', registers: [one] }).inc()
  t.match(await one.metrics(), /^things_total 1$/m)
  t.notMatch(await other.metrics(), 'things_total')
})
