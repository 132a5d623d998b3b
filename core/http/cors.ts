// Lets pages of the configured origins call the API from a browser. Without configured origins, no answer has CORS headers.
import cors from '@fastify/cors'
import type { FastifyInstance, RouteOptions } from 'fastify'

const EXPOSED = ['ETag', 'Idempotent-Replayed', 'Link', 'Location', 'Retry-After', 'X-Request-Id', 'X-Should-Retry', 'X-Trace-Id']

/** Must be registered before the check of keys: a browser's preflight request has none, and the browser must be able to read refusals, too. */
export async function allowOrigins (app: FastifyInstance, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return
  await app.register(cors, { origin: [...origins], methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'], exposedHeaders: EXPOSED, credentials: false, maxAge: 600 })
}

/** The route with which the library answers preflight requests. */
export function isPreflightRoute ({ method, url }: RouteOptions): boolean {
  return method === 'OPTIONS' && url === '*'
}
