// The HTTP side of builds: parse, one call, status.
import multipart from '@fastify/multipart'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { NotFound, PluginDisabled } from '../../core/errors/common.ts'
import { clientGone, untilStop } from '../../core/http/client-gone.ts'
import { RepositoryForbidden } from '../../core/http/errors.ts'
import { answerPage } from '../../core/http/list.ts'
import { eventStream, SSE_HEADERS } from '../../core/http/sse.ts'
import type { Shares } from '../../core/jobs/shares.ts'
import { InvalidName } from '../../core/library/oci/errors.ts'
import { builderRoutes } from './builders/routes.ts'
import { BuilderUnusable, BuildFinished, QueueFull, SourceTooLarge } from './errors.ts'
import { BuildList, BuildPath, BuildView, CreateBuild, EventsQuery, ListBuildsQuery } from './schemas.ts'
import type { Builds } from './service.ts'
import { MAX_FIELD_BYTES } from './upload/form.ts'
import { drain, notMultipart, partsOf } from './upload/multipart.ts'
import type { Rights } from './upload/order.ts'
import type { Upload } from './upload/receive.ts'

const READ = { scope: 'build:read' }
const TAGS = ['builds']

export interface RouteOptions {
  readonly builds: Builds
  readonly maxSourceBytes: number
  readonly shares: Shares
  readonly rightsOf: (request: FastifyRequest) => Rights
}

export function buildRoutes (options: RouteOptions): FastifyPluginAsyncTypebox {
  return async (app) => {
    await app.register(createRoute(options))
    await app.register(objectRoutes(options.builds))
    await app.register(builderRoutes(options.builds.builders))
  }
}

/**
 * The form is read before it is validated, as the body of other requests is: so it is validated in the same way, and `Idempotency-Key` uses the hash of its source. The source stays a
 * stream, since it may be larger than the memory.
 */
function createRoute ({ builds, maxSourceBytes, shares, rightsOf }: RouteOptions): FastifyPluginAsyncTypebox {
  const uploads = new WeakMap<FastifyRequest, Upload>()
  return async (app) => {
    app.removeAllContentTypeParsers()
    await app.register(multipart)
    app.addContentTypeParser('*', (_request, _payload, done) => { done(notMultipart()) })

    app.post('/builds', {
      config: { scope: 'build:write', idempotent: true, errors: [InvalidName, PluginDisabled, SourceTooLarge, QueueFull, BuilderUnusable, RepositoryForbidden, NotFound], passesErrors: true },
      schema: { tags: TAGS, consumes: ['multipart/form-data'], body: CreateBuild, response: { 202: BuildView } },
      preValidation: async (request) => {
        try {
          await shares.check(request.principal)
          const upload = await builds.receive(partsOf(request, Math.max(maxSourceBytes, MAX_FIELD_BYTES) + 1))
          uploads.set(request, upload)
          const unchecked: { body: unknown } = request
          unchecked.body = upload.body
        } finally {
          drain(request)
        }
      },
      // Whatever the answer is: an upload that did not become a build is useless.
      onSend: async (request) => {
        const upload = uploads.get(request)
        uploads.delete(request)
        if (upload !== undefined) await builds.drop(upload)
      }
    }, async (request, reply) => {
      const upload = uploads.get(request)
      if (upload === undefined) throw new Error('a form was checked that nobody has read')
      return reply.code(202).send(await shares.begin(request.principal, async () => await builds.create(upload, request.body, rightsOf(request)), ({ id }) => id))
    })
  }
}

/** Routes that show and end builds. */
function objectRoutes (builds: Builds): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/builds', {
      config: READ,
      schema: { tags: TAGS, querystring: ListBuildsQuery, response: { 200: BuildList } }
    }, async (request, reply) => {
      return answerPage(await builds.list(request.query), ({ id }) => id, request, reply).map(builds.view)
    })

    app.get('/builds/:id', {
      config: READ,
      schema: { tags: TAGS, params: BuildPath, response: { 200: BuildView } }
    }, async (request) => await builds.get(request.params.id))

    app.delete('/builds/:id', {
      config: { scope: 'build:delete', errors: [BuildFinished] },
      schema: { tags: TAGS, description: 'Cancels a build; answers when nothing of it runs any more', params: BuildPath, response: { 204: Type.Null() } }
    }, async (request, reply) => {
      await builds.cancel(request.params.id)
      return reply.code(204).send(null)
    })

    app.get('/builds/:id/events', {
      config: { ...READ, produces: 'text/event-stream' },
      schema: {
        tags: TAGS,
        description: 'Server-Sent Events; the data of each is a JSON object of the type log, status or heartbeat. A client that was cut off goes on by the header Last-Event-ID',
        params: BuildPath,
        querystring: EventsQuery
      }
    }, async (request, reply) => {
      const { follow = false } = request.query
      const signal = follow ? untilStop(app, request, reply) : clientGone(request, reply)
      const events = await builds.events(request.params.id, { follow, lastEventId: lastEventId(request), signal })
      return reply.headers(SSE_HEADERS).send(eventStream(events, signal))
    })
  }
}

function lastEventId ({ headers }: FastifyRequest): string | undefined {
  const value = headers['last-event-id']
  return typeof value === 'string' ? value : undefined
}
