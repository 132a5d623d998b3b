// An unknown path gets 404; a known path with another method gets 405 and the methods that it has.
import type { FastifyInstance, RouteOptions } from 'fastify'
import { RouteNotFound } from './errors.ts'

interface Known { readonly pattern: RegExp, readonly methods: Set<string> }

/** Remembers routes as they are added, and answers for those that do not exist. */
export function answerUnknownRoutes (app: FastifyInstance): (route: RouteOptions) => void {
  const known = new Map<string, Known>()

  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?')[0] ?? ''
    const methods = [...known.values()].filter(({ pattern }) => pattern.test(path)).flatMap((entry) => [...entry.methods])
    if (methods.length === 0) throw RouteNotFound(request.method, path)
    const allowed = [...new Set(methods)].sort().join(', ')
    return reply.code(405).header('allow', allowed).header('x-should-retry', 'false')
      .send({ code: 'method_not_allowed', message: `${path} has no ${request.method}; it has ${allowed}` })
  })

  return (route) => {
    const entry = known.get(route.url) ?? { pattern: patternOf(route.url), methods: new Set<string>() }
    for (const method of [route.method].flat()) entry.methods.add(method)
    known.set(route.url, entry)
  }
}

// `/images/:name/tag` → one segment for the parameter; `*` → the rest
function patternOf (url: string): RegExp {
  const source = url.split(/(:[A-Za-z0-9_]+|\*)/).map((part) =>
    part === '*' ? '.*' : part.startsWith(':') ? '[^/]+' : part.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('')
  return new RegExp(`^${source}$`)
}
