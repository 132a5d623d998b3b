// The HTTP side of the host: parse, one call, status.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { readTime } from '../../core/date-time.ts'
import { untilStop } from '../../core/http/client-gone.ts'
import { eventStream, SSE_HEADERS } from '../../core/http/sse.ts'
import type { Checks } from './checks.ts'
import { TooManyFollowers } from './errors.ts'
import type { Log } from './log/log.ts'
import { SCOPES } from './manifest.ts'
import type { Processes } from './processes.ts'
import { FollowQuery, HostChecks, HostLog, HostLogQuery, HostProcesses } from './schemas.ts'
import { checksView, logView, processesView } from './view.ts'

const LOOK = { scope: SCOPES.look }
const TAGS = ['host']
const DEFAULT_LINES = 200

export interface Host { readonly checks: Checks, readonly processes: Processes, readonly log: Log }

export function hostRoutes ({ checks, processes, log }: Host): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/host/checks', {
      config: LOOK,
      schema: { tags: TAGS, operationId: 'checkHost', description: 'What the server finds of its host, with what to do about it. Looked at anew when the last look is some seconds old', response: { 200: HostChecks } }
    }, async () => checksView(await checks.findings()))

    app.get('/host/processes', {
      config: LOOK,
      schema: { tags: TAGS, operationId: 'listHostProcesses', description: 'Processes that the server keeps running, and the VMMs of instances. Arguments and environments are not told', response: { 200: HostProcesses } }
    }, async () => processesView(await processes.list()))

    app.get('/host/log', {
      config: { scope: SCOPES.log },
      schema: { tags: TAGS, operationId: 'getHostLog', description: 'The newest lines of the server\'s own log, oldest first, as far as it still has them in memory (log.recent)', querystring: HostLogQuery, response: { 200: HostLog } }
    }, async ({ query: { limit = DEFAULT_LINES, level, since } }) => logView(log.newest({ limit, level, since: since === undefined ? undefined : readTime('query parameter since', since) })))

    app.get('/host/log/stream', {
      config: { scope: SCOPES.log, produces: 'text/event-stream', errors: [TooManyFollowers] },
      schema: {
        tags: TAGS,
        operationId: 'streamHostLog',
        description: 'Server-Sent Events: the newest lines and those that come, the data of each is an entry as in GET /host/log. With Last-Event-ID it goes on behind that line. An event named missed says how many lines are gone because the client did not read them in time',
        querystring: FollowQuery
      }
    }, async (request, reply) => {
      const after = request.headers['last-event-id']
      const { limit = DEFAULT_LINES, level } = request.query
      const signal = untilStop(app, request, reply)
      const lines = await log.follow({ limit, level, after: typeof after === 'string' && after !== '' ? after : undefined }, request.principal, signal)
      return reply.headers(SSE_HEADERS).send(eventStream(lines, signal))
    })
  }
}
