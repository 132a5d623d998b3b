// The HTTP side of pushes: parse, one call, status.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { durableIdOf } from '../../core/auth/durable-id.ts'
import type { ApiKeys } from '../../core/contracts/services.ts'
import { NotFound } from '../../core/errors/common.ts'
import { Forbidden, RepositoryForbidden } from '../../core/http/errors.ts'
import { answerPage } from '../../core/http/list.ts'
import type { Shares } from '../../core/jobs/shares.ts'
import { InvalidName } from '../../core/library/oci/errors.ts'
import { ImageNotReady, InvalidTarget, TooManyPushes } from './errors.ts'
import { PushCreate, PushList, PushListQuery, PushPath, PushView } from './schemas.ts'
import type { Pushes, Rights } from './service.ts'
import { pushView } from './view.ts'

const READ = { scope: 'push:read' }
const READ_IMAGES = 'image:read'
const TAGS = ['pushes']
const RETRY_AFTER_SECONDS = 1

export interface PushRouteOptions {
  readonly pushes: Pushes
  readonly shares: Shares
  readonly apiKeys: Pick<ApiKeys, 'allows' | 'mayWrite'>
}

export function pushRoutes ({ pushes, shares, apiKeys }: PushRouteOptions): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post('/pushes', {
      config: { scope: 'push:write', idempotent: true, errors: [InvalidTarget, InvalidName, ImageNotReady, RepositoryForbidden, NotFound, TooManyPushes], passesErrors: true },
      schema: { tags: TAGS, description: 'Needs the scope image:read as well', body: PushCreate, response: { 202: PushView } }
    }, async (request, reply) => {
      const rights = rightsOf(request, apiKeys)
      // The server reads the image with its own rights, and hands it to whoever reads at the target.
      if (!rights.allows(READ_IMAGES)) throw Forbidden(READ_IMAGES)
      const push = await shares.begin(request.principal, async () => await pushes.create(request.body, rights), ({ id }) => id)
      return reply.code(202).header('location', `/pushes/${push.id}`).header('retry-after', RETRY_AFTER_SECONDS).send(pushView(push))
    })

    app.get('/pushes', {
      config: READ,
      schema: { tags: TAGS, querystring: PushListQuery, response: { 200: PushList } }
    }, async (request, reply) => answerPage(await pushes.list(request.query), ({ id }) => id, request, reply).map(pushView))

    app.get('/pushes/:id', {
      config: READ,
      schema: { tags: TAGS, params: PushPath, response: { 200: PushView } }
    }, async (request) => pushView(await pushes.get(request.params.id)))
  }
}

function rightsOf ({ principal }: FastifyRequest, apiKeys: PushRouteOptions['apiKeys']): Rights {
  return {
    keyId: principal === null ? null : durableIdOf(principal),
    mayWrite: (repository) => principal !== null && apiKeys.mayWrite(principal, repository),
    allows: (scope) => principal !== null && apiKeys.allows(principal, scope)
  }
}
