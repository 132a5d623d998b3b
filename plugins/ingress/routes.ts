// The HTTP side of ingresses: parse, one call, status.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { answerPage, matchesTags, paginate, wantedPage } from '../../core/http/list.ts'
import { untilStop } from '../../core/http/client-gone.ts'
import { eventStream, SSE_HEADERS } from '../../core/http/sse.ts'
import { HostnameInUse, IngressExists, TargetNotFound, TooManyIngresses } from './errors.ts'
import { CreateIngress, IngressList, IngressRef, IngressView, ListIngressesQuery, RequestLog, RequestLogQuery } from './schemas.ts'
import type { Ingresses } from './service.ts'

const READ = { scope: 'ingress:read' }
const TAGS = ['ingresses']
const DEFAULT_ENTRIES = 100

export function ingressRoutes (ingresses: Ingresses): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post('/ingresses', {
      config: { scope: 'ingress:write', idempotent: true, errors: [IngressExists, HostnameInUse, TargetNotFound, TooManyIngresses] },
      schema: { tags: TAGS, body: CreateIngress, response: { 201: IngressView } }
    }, async (request, reply) => reply.code(201).send(ingresses.view(await ingresses.create(request.body))))

    app.get('/ingresses', {
      config: READ,
      schema: { tags: TAGS, querystring: ListIngressesQuery, response: { 200: IngressList } }
    }, async (request, reply) => {
      const { name, tags: wanted, ...page } = request.query
      const all = ingresses.all().filter(({ name: own, tags }) => (name === undefined || own === name) && matchesTags(tags, wanted))
      const found = paginate(all, wantedPage(page), ({ id }) => id, { created_at: ({ createdAt }) => createdAt, name: ({ name: own }) => own })
      return await Promise.all(answerPage(found, ({ id }) => id, request, reply).map(async (record) => await ingresses.current(record)))
    })

    app.get('/ingresses/:id', {
      config: READ,
      schema: { tags: TAGS, params: IngressRef, response: { 200: IngressView } }
    }, async (request) => await ingresses.current(ingresses.get(request.params.id)))

    app.delete('/ingresses/:id', {
      config: { scope: 'ingress:delete' },
      schema: { tags: TAGS, params: IngressRef, response: { 204: Type.Null() } }
    }, async (request, reply) => {
      await ingresses.delete(request.params.id)
      return reply.code(204).send(null)
    })

    app.get('/ingress-authority', {
      config: { ...READ, produces: 'application/x-pem-file' },
      schema: { tags: TAGS, operationId: 'getIngressAuthority', response: { 200: Type.String({ description: 'Certificate as PEM of the authority behind self-signed certificates' }) } }
    }, async (_request, reply) => reply.type('application/x-pem-file').send(await ingresses.authority()))

    app.get('/instances/:id/ingress', {
      config: READ,
      schema: { tags: ['instances'], operationId: 'getInstanceIngress', params: IngressRef, querystring: RequestLogQuery, response: { 200: RequestLog } }
    }, async (request) => ({ entries: await ingresses.requests(request.params.id, request.query.limit ?? DEFAULT_ENTRIES) }))

    app.get('/instances/:id/ingress/stream', {
      config: { ...READ, produces: 'text/event-stream' },
      schema: {
        tags: ['instances'],
        operationId: 'streamInstanceIngress',
        description: 'Server-Sent Events: requests to the instance from now on, the data of each is an entry as in GET /instances/{id}/ingress. Ends when the instance is deleted',
        params: IngressRef
      }
    }, async (request, reply) => {
      const signal = untilStop(app, request, reply)
      return reply.headers(SSE_HEADERS).send(eventStream(ingresses.follow(request.params.id, signal), signal))
    })
  }
}
