// The HTTP side of images. Names contain slashes, so a wildcard matches them, encoded or not.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { NotFound } from '../../core/errors/common.ts'
import { RepositoryForbidden } from '../../core/http/errors.ts'
import { answerPage } from '../../core/http/list.ts'
import type { Shares } from '../../core/jobs/shares.ts'
import { credentialsOf } from '../../core/library/oci/credentials.ts'
import { InvalidName } from '../../core/library/oci/errors.ts'
import { ImageFailed, ImageNotReady, PULL_ERRORS, TooManyPulls } from './errors.ts'
import { imageBody, ImageBody, ImageCreate, ImageList, ImageListQuery, ImagePath, ImageQuery, ImageTag, ImageWithDetails } from './schemas.ts'
import type { Images } from './service.ts'

export interface ImageRouteOptions {
  readonly images: Images
  /** of pulls */
  readonly shares: Shares
  /** whether the key of a request may write to a repository */
  readonly mayWrite: (request: FastifyRequest, repository: string) => boolean
}

export function imageRoutes ({ images, shares, mayWrite }: ImageRouteOptions): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post('/images', {
      config: { scope: 'image:write', idempotent: true, replaces: '/images/*', errors: [...PULL_ERRORS, TooManyPulls] },
      schema: { tags: ['images'], body: ImageCreate, response: { 202: ImageBody } }
    }, async (request, reply) => {
      const { name, platform, tags, credentials } = request.body
      const image = await shares.begin(request.principal, async () => await images.pull(name, { platform, tags, credentials: credentialsOf(credentials) }), (begun) => begun.name)
      return reply.code(202).send(imageBody(image))
    })

    app.get('/images', {
      config: { scope: 'image:read', errors: [InvalidName] },
      schema: { tags: ['images'], querystring: ImageListQuery, response: { 200: ImageList } }
    }, async (request, reply) => {
      return answerPage(await images.list(request.query), ({ name }) => name, request, reply).map(imageBody)
    })

    app.get('/images/*', {
      config: { scope: 'image:read', documentedAs: '/images/:name', errors: [InvalidName] },
      schema: { tags: ['images'], params: ImagePath, querystring: ImageQuery, response: { 200: ImageWithDetails } }
    }, async (request) => {
      const image = await images.get(referenceOf(request.params['*']))
      return { ...imageBody(image), ...request.query.details === true ? { details: await images.details(image) ?? null } : {} }
    })

    app.delete('/images/*', {
      config: { scope: 'image:delete', documentedAs: '/images/:name', errors: [InvalidName, RepositoryForbidden] },
      schema: { tags: ['images'], params: ImagePath, response: { 204: Type.Null() } }
    }, async (request, reply) => {
      await images.remove(referenceOf(request.params['*']), (repository) => mayWrite(request, repository))
      return reply.code(204).send(null)
    })

    app.post('/images/*', {
      config: { scope: 'image:write', idempotent: true, documentedAs: '/images/:name/tag', errors: [InvalidName, RepositoryForbidden, ImageNotReady, ImageFailed] },
      schema: { tags: ['images'], params: ImagePath, body: ImageTag, response: { 201: ImageBody } }
    }, async (request, reply) => {
      const path = request.params['*']
      if (!path.endsWith('/tag')) throw NotFound('route', request.url)
      const image = await images.alias(referenceOf(path.slice(0, -'/tag'.length)), request.body.target, (repository) => mayWrite(request, repository))
      return reply.code(201).send(imageBody(image))
    })
  }
}

// Clients that encode a name before they pass it to the SDK encode it twice. No reference contains a percent sign.
function referenceOf (path: string): string {
  return path.replaceAll(/%(2F|3A|40)/gi, (code) => decodeURIComponent(code))
}
