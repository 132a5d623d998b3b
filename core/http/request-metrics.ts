// Counts requests and measures their time by route pattern, so that ids and names in paths make no new series.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Counter, Histogram, type Registry } from 'prom-client'

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** Called when an answer has been sent. */
export function requestMetrics (registry: Registry): (request: FastifyRequest, reply: FastifyReply) => void {
  const requests = new Counter({
    name: 'berth_http_requests_total',
    help: 'Answered requests',
    labelNames: ['method', 'route', 'status'],
    registers: [registry]
  })
  const durations = new Histogram({
    name: 'berth_http_request_duration_seconds',
    help: 'Time from a request to the end of its answer',
    labelNames: ['method', 'route'],
    buckets: BUCKETS_SECONDS,
    registers: [registry]
  })
  // Each set of labels is looked up once: prom-client sorts and joins labels at every call, which costs more than the rest of this.
  const known = new Map<string, { readonly inc: () => void, readonly observe: (seconds: number) => void }>()
  const seriesOf = (method: string, route: string, status: number): { readonly inc: () => void, readonly observe: (seconds: number) => void } => {
    const key = `${method} ${status} ${route}`
    let series = known.get(key)
    if (series === undefined) {
      const counter = requests.labels({ method, route, status })
      const histogram = durations.labels({ method, route })
      series = { inc: () => counter.inc(), observe: (seconds) => histogram.observe(seconds) }
      known.set(key, series)
    }
    return series
  }
  return (request, reply) => {
    const series = seriesOf(request.method, request.routeOptions.url ?? 'unknown', reply.statusCode)
    series.inc()
    series.observe(reply.elapsedTime / 1000)
  }
}
