// GET /plugins: the state of each plugin.
import { fastifyAwilixPlugin } from '@fastify/awilix'
import type { AwilixContainer } from 'awilix'
import type { FastifyPluginAsync } from 'fastify'
import { Type } from 'typebox'
import { nullable } from '../http/schemas.ts'
import type { PluginReports } from './reports.ts'

const Report = Type.Object({
  id: Type.String(),
  state: Type.Enum(['waiting', 'started', 'disabled', 'skipped', 'blocked', 'failed']),
  reason: nullable(Type.String({ description: 'why it is not started' })),
  start_ms: nullable(Type.Integer({ description: 'how long it took to start, in milliseconds' }))
}, { additionalProperties: false })

/**
 * Core's own routes read the container through Fastify. Only their context has it: @fastify/awilix makes a scope for
 * each request, which costs more than all the rest of a GET, and plugins have their services by the time their routes are mounted.
 */
export function pluginRoutes (container: AwilixContainer): FastifyPluginAsync {
  return async http => {
    // Disposal stays with core: Fastify would empty the container before the plugins stop, and they read services while they do.
    await http.register(fastifyAwilixPlugin, { container, disposeOnClose: false, disposeOnResponse: false, asyncInit: false, asyncDispose: false, eagerInject: false })
    const reports = http.diContainer.resolve<PluginReports>('plugins')
    http.get('/plugins', {
      config: { scope: 'resource:read' },
      schema: { summary: 'List every plugin and what became of it', tags: ['server'], response: { 200: Type.Array(Report) } }
    }, async () => reports.list().map(({ id, state, reason, startMs }) => ({ id, state, reason: reason ?? null, start_ms: startMs ?? null })))
  }
}
