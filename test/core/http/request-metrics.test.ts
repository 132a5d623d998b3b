// What is counted of requests is written as prom-client would write it.
import { Histogram, Registry } from 'prom-client'
import t from 'tap'
import { TalliedHistogram } from '../../../core/metrics/tallied-histogram.ts'

const VALUES = [0, 0.001, 0.0011, 0.2, 0.5, 0.7, 1000]
const BUCKETS = [0.001, 0.5, 1]

async function written (name: string, fill: (registry: Registry) => void): Promise<{ readonly text: string, readonly json: unknown }> {
  const registry = new Registry()
  fill(registry)
  return { text: await registry.metrics(), json: (await registry.getMetricsAsJSON()).find((each) => each.name === name) }
}

/** Berth gives none. */
function withoutExemplars (json: unknown): unknown {
  return JSON.parse(JSON.stringify(json, (key, value: unknown) => key === 'exemplar' ? undefined : value))
}

t.test('a histogram that counts in arrays gives the same text and the same JSON as the one of prom-client', async (t) => {
  const options = { name: 'time_seconds', help: 'Some time', labelNames: ['route', 'method'], buckets: BUCKETS }
  const series = [{ method: 'GET', route: '/a "b"' }, { method: 'PUT', route: '/c' }]
  const expected = await written('time_seconds', (registry) => {
    const histogram = new Histogram({ ...options, registers: [registry] })
    for (const labels of series) for (const value of VALUES) histogram.observe(labels, value)
  })
  const counted = await written('time_seconds', (registry) => {
    const histogram = new TalliedHistogram({ ...options, registers: [registry] })
    for (const labels of series) for (const value of VALUES) histogram.tally(labels).add(value)
  })
  t.match(expected.text, 'time_seconds_bucket{le="+Inf",method="PUT",route="/c"} 7')
  t.equal(counted.text, expected.text)
  t.same(withoutExemplars(counted.json), withoutExemplars(expected.json))
})
