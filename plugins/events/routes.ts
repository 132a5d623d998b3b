// The HTTP side of events: parse, one call, status.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import type { Readable } from 'node:stream'
import { Type } from 'typebox'
import { durableIdOf } from '../../core/auth/durable-id.ts'
import { bearerKey } from '../../core/auth/presented.ts'
import { principalOf } from '../../core/auth/principal-of.ts'
import type { ApiKeyPrincipal, ApiKeys } from '../../core/contracts/services.ts'
import { ANY_KEY } from '../../core/http/authorize.ts'
import { untilStop } from '../../core/http/client-gone.ts'
import { eventStream, SSE_HEADERS } from '../../core/http/sse.ts'
import { EventsExpired, TooManyStreams } from './errors.ts'
import { EventsQuery, Snapshot, SnapshotQuery } from './schemas.ts'
import type { Events } from './service.ts'

const TAGS = ['events']

export function eventRoutes (events: Events, apiKeys: ApiKeys): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/events', {
      config: { scope: ANY_KEY, produces: 'text/event-stream', errors: [TooManyStreams, EventsExpired] },
      schema: {
        operationId: 'streamEvents',
        tags: TAGS,
        description: 'Server-Sent Events: what changes from now on, or since the event that the header Last-Event-ID names, of resources that the key may read. ' +
          'The data of each is a JSON object with a type, such as ready, instance.updated, image.progress or bookmark. 410 events_expired: the id is not known any more; read GET /events/snapshot',
        querystring: EventsQuery,
        response: { 200: Type.Unsafe<Readable>({ type: 'string' }) }
      }
    }, async (request, reply) => {
      const { after, ...filter } = request.query
      const signal = untilStop(app, request, reply)
      const stream = await events.stream({ filter, after: lastEventId(request) ?? after, owner: principalOf(request), principal: async () => await callerOf(request, apiKeys), signal })
      return reply.headers(SSE_HEADERS).send(eventStream(stream, signal))
    })

    app.get('/events/snapshot', {
      config: { scope: ANY_KEY },
      schema: {
        operationId: 'getEventsSnapshot',
        tags: TAGS,
        description: 'All resources that the key may read, and the id after which GET /events tells what becomes of them',
        querystring: SnapshotQuery,
        response: { 200: Snapshot }
      }
    }, async (request) => await events.snapshot(request.query, principalOf(request)))
  }
}

function lastEventId (request: FastifyRequest): string | undefined {
  const header = request.headers['last-event-id']
  return typeof header === 'string' && header !== '' ? header : undefined
}

/** Called again while a stream is open, since a key can be revoked. */
async function callerOf (request: FastifyRequest, apiKeys: ApiKeys): Promise<ApiKeyPrincipal | undefined> {
  const key = bearerKey(request.headers.authorization ?? '')
  return key === undefined ? await apiKeys.current(durableIdOf(principalOf(request))) : await apiKeys.verify(key)
}
