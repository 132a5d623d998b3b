// The OpenAPI document, made from the routes' own schemas, and a page to read it.
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import { OPEN_CONTEXT } from './authorize.ts'

/** Must be registered before the routes that the document is to describe. */
export async function registerOpenapi (app: FastifyInstance, version: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Berth', version, description: 'Runs OCI images as virtual machines.' },
      components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'An API key' } } },
      security: [{ bearer: [] }]
    },
    refResolver: { buildLocalReference: (json, _base, _fragment, index) => typeof json['$id'] === 'string' ? json['$id'] : `schema-${index}` },
    transform: ({ schema, url, route }) => ({ schema: document(schema, route), url })
  })
  await app.register(async (docs) => {
    docs.decorate(OPEN_CONTEXT, true)
    await docs.register(swaggerUi, { routePrefix: '/docs', staticCSP: false })
  })
  const text = once(() => JSON.stringify(app.swagger()))
  app.get('/openapi.json', { config: { scope: null }, schema: { hide: true } }, (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(text()))
}

function document (schema: FastifySchema | undefined, route: RouteOptions): FastifySchema {
  const scope = route.config?.scope ?? null
  const first = route.url.split('/')[1] ?? ''
  return {
    ...(first === '' ? {} : { tags: [first] }),
    ...schema,
    description: [schema?.description, scope === null ? 'Needs no key.' : `Needs the scope \`${scope}\`.`].filter((part) => part !== undefined).join('\n\n'),
    ...(scope === null ? { security: [] } : {})
  }
}

function once<T> (make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
