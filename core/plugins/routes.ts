// GET /plugins: what became of each plugin.
import type { FastifyPluginAsync } from 'fastify'
import { Type } from 'typebox'
import { errorResponses, nullable } from '../http/schemas.ts'
import type { PluginReports } from './reports.ts'

const Report = Type.Object({
  id: Type.String(),
  state: Type.Enum(['waiting', 'started', 'disabled', 'skipped', 'blocked', 'failed']),
  reason: nullable(Type.String({ description: 'why it is not started' })),
  start_ms: nullable(Type.Integer({ description: 'how long it took to start, in milliseconds' }))
}, { additionalProperties: false })

export function pluginRoutes (reports: PluginReports): FastifyPluginAsync {
  return async http => {
    http.get('/plugins', {
      config: { scope: 'resource:read' },
      schema: { summary: 'List every plugin and what became of it', tags: ['server'], response: { 200: Type.Array(Report), ...errorResponses(401, 403) } }
    }, async () => reports.list().map(({ id, state, reason, startMs }) => ({ id, state, reason: reason ?? null, start_ms: startMs ?? null })))
  }
}
