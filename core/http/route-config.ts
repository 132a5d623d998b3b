// The configuration of a request's route, looked up once: Fastify makes `routeOptions` anew at each look, which costs as much as a hook.
import type { FastifyContextConfig, FastifyRequest } from 'fastify'

/** With the method and the path of the route, which are Fastify's; without them for a request that has no route. */
export type RouteConfig = FastifyContextConfig & { readonly url?: string }

declare module 'fastify' {
  interface FastifyRequest {
    /** null until the check of the key, which notes it */
    routeConfig: RouteConfig | null
  }
}

export function noteRouteConfig (request: FastifyRequest): RouteConfig {
  return (request.routeConfig = request.routeOptions.config)
}
