// Counts requests and measures their time by route pattern, so that ids and names in paths make no new series.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Counter, type Registry } from 'prom-client'
import type { RouteConfig } from './route-config.ts'
import { TalliedHistogram, type Tally } from '../metrics/tallied-histogram.ts'

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
const NO_ROUTE = 'unknown'

/** The answers of one method and route with one status. */
interface Answers { readonly method: string, readonly status: number, readonly route: string, readonly tally: Tally, count: number, reported: number }

/** Called when an answer has been sent. */
export function requestMetrics (registry: Registry): (request: FastifyRequest, reply: FastifyReply) => void {
  // What is counted here becomes a metric when somebody asks for it: prom-client's own counting costs a sixth of a whole request.
  const known = new Map<RouteConfig | null, Answers[]>()
  const requests: Counter<'method' | 'route' | 'status'> = new Counter({
    name: 'berth_http_requests_total',
    help: 'Answered requests',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
    collect () {
      for (const answers of [...known.values()].flat()) {
        const { method, route, status } = answers
        requests.inc({ method, route, status }, answers.count - answers.reported)
        answers.reported = answers.count
      }
    }
  })
  const durations = new TalliedHistogram({
    name: 'berth_http_request_duration_seconds',
    help: 'Time from a request to the end of its answer',
    labelNames: ['method', 'route'],
    buckets: BUCKETS_SECONDS,
    registers: [registry]
  })
  return (request, reply) => {
    const { method, routeConfig: config } = request
    const { statusCode: status } = reply
    let ofRoute = known.get(config)
    if (ofRoute === undefined) known.set(config, ofRoute = [])
    let answers = ofRoute.find((each) => each.status === status && each.method === method)
    if (answers === undefined) {
      const route = config?.url ?? NO_ROUTE
      answers = { method, status, route, tally: durations.tally({ method, route }), count: 0, reported: 0 }
      ofRoute.push(answers)
    }
    answers.count += 1
    answers.tally.add(reply.elapsedTime / 1000)
  }
}
