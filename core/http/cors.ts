// Lets pages of the configured origins call the API from a browser. Without one, no answer says anything about origins.
import cors from '@fastify/cors'
import type { FastifyInstance, RouteOptions } from 'fastify'

const EXPOSED = ['ETag', 'Idempotent-Replayed', 'Link', 'Location', 'Retry-After', 'X-Request-Id']

/** Must be registered before what asks for keys: a browser asks first without one, and is to read refusals, too. */
export async function allowOrigins (app: FastifyInstance, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return
  await app.register(cors, { origin: [...origins], methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'], exposedHeaders: EXPOSED, credentials: false, maxAge: 600 })
}

/** The route with which the library answers a browser that asks first. */
export function isPreflightRoute ({ method, url }: RouteOptions): boolean {
  return method === 'OPTIONS' && url === '*'
}
