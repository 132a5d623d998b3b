// The HTTP side of builders: parse, one call, status.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { answerPage } from '../../../core/http/list.ts'
import { BuilderBusy, BuilderExists } from '../errors.ts'
import type { Builders, WantedBuilder } from './builders.ts'
import { BuilderList, BuilderPath, BuilderView, CreateBuilder, ListBuildersQuery } from './schemas.ts'

const READ = { scope: 'build:read' }
const WRITE = { scope: 'build:write' }
const TAGS = ['builders']

export function builderRoutes (builders: Builders): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post('/builders', {
      config: { ...WRITE, idempotent: true, optionalBody: true, errors: [BuilderExists] },
      schema: { tags: TAGS, body: CreateBuilder, response: { 201: BuilderView } }
    }, async (request, reply) => reply.code(201).send(builders.view(await builders.create(wantedOf(request.body)))))

    app.get('/builders', {
      config: READ,
      schema: { tags: TAGS, querystring: ListBuildersQuery, response: { 200: BuilderList } }
    }, async (request, reply) => {
      return answerPage(await builders.list(request.query), ({ id }) => id, request, reply).map(builders.view)
    })

    app.get('/builders/:id', {
      config: READ,
      schema: { tags: TAGS, params: BuilderPath, response: { 200: BuilderView } }
    }, async (request) => builders.view(await builders.get(request.params.id)))

    app.delete('/builders/:id', {
      config: { scope: 'build:delete', errors: [BuilderBusy] },
      schema: { tags: TAGS, params: BuilderPath, response: { 204: Type.Null() } }
    }, async (request, reply) => {
      await builders.delete(request.params.id)
      return reply.code(204).send(null)
    })

    app.post('/builders/:id/prune', {
      config: { ...WRITE, errors: [BuilderBusy] },
      schema: { tags: TAGS, params: BuilderPath, response: { 202: BuilderView } }
    }, async (request, reply) => reply.code(202).send(builders.view(await builders.prune(request.params.id))))
  }
}

function wantedOf ({ disk_size_gb: diskSizeGb, ...others }: CreateBuilder): WantedBuilder {
  return { ...others, ...diskSizeGb === undefined ? {} : { diskSizeGb } }
}
