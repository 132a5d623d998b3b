// The HTTP side of resources.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { sendBytes } from '../../core/http/kept-json.ts'
import { ResourcesView } from './schemas.ts'
import type { Resources } from './service.ts'

export function resourceRoutes (resources: Resources): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/resources', {
      config: { scope: 'resource:read' },
      schema: { summary: 'What the host has, and who takes what of it', tags: ['resources'], response: { 200: ResourcesView } }
    }, async (_request, reply) => sendBytes(reply, await resources.overview()))
  }
}
