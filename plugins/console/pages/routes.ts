// The pages: files from the build, under a content security policy that allows only their own scripts.
import { fileURLToPath } from 'node:url'
import fastifyStatic from '@fastify/static'
import type { FastifyPluginAsync } from 'fastify'
import { OPEN_CONTEXT } from '../../../core/http/authorize.ts'

/** Where the build puts the pages (setup/console/build.mjs). */
export const PAGES = fileURLToPath(new URL('../web/', import.meta.url))

const POLICY = [
  "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "font-src 'self'", "connect-src 'self'",
  "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"
].join('; ')

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()'
}

/** The names of these files change with their content. */
const HASHED = /-[A-Z0-9]{8}\.[a-z0-9]+$/

export function pageRoutes (): FastifyPluginAsync {
  return async (app) => {
    app.decorate(OPEN_CONTEXT, true)
    app.addHook('onSend', async (_request, reply) => { reply.headers(HEADERS) })
    // A route for each file that exists at the start: no path leads to any other.
    await app.register(fastifyStatic, {
      root: PAGES,
      prefix: '/console/',
      wildcard: false,
      redirect: false,
      schemaHide: true,
      cacheControl: false,
      setHeaders: (reply, path) => { reply.setHeader('cache-control', HASHED.test(path) ? 'public, max-age=31536000, immutable' : 'no-cache') }
    })
    app.get('/console', { schema: { hide: true } }, async (_request, reply) => await reply.redirect('/console/', 308))
  }
}
