// The OpenAPI document, made from the routes' own schemas, and a page that shows it.
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import { stringify } from 'yaml'
import { ANY_KEY, OPEN_CONTEXT } from '../authorize.ts'
import { finish, type RouteNotes } from './finish.ts'
import { operationIdOf, summaryOf } from './names.ts'
import type { DocumentTag } from './tags.ts'

const INFO = 'Runs OCI images as virtual machines. Every error is `{code, message, details?}`: `code` is stable and for programs, `message` for people. ' +
  'Wherever a path takes an id, it takes the beginning of one, too, that only one resource has.'

/** Must be registered before the routes that the document describes. */
export async function registerOpenapi (app: FastifyInstance, version: string, tags: readonly DocumentTag[]): Promise<void> {
  const groups = new Set(tags.map(({ name }) => name))
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Berth', version, description: INFO },
      servers: [{ url: '/', description: 'The server that this document is from' }],
      tags: tags.map(({ name, description }) => ({ name, description })),
      components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'An API key' } } },
      security: [{ bearer: [] }]
    },
    refResolver: { buildLocalReference: (json, _base, _fragment, index) => typeof json['$id'] === 'string' ? json['$id'] : `schema-${index}` },
    transform: ({ schema, url, route }) => {
      const documented = route.config?.documentedAs ?? url
      return { schema: document(schema, route, documented, groups), url: documented }
    }
  })
  await app.register(async (docs) => {
    docs.decorate(OPEN_CONTEXT, true)
    await docs.register(swaggerUi, { routePrefix: '/docs', staticCSP: false })
  })
  const json = once(() => JSON.stringify(finish(JSON.parse(JSON.stringify(app.swagger())))))
  const yaml = once(() => stringify(JSON.parse(json()), { aliasDuplicateObjects: false }))
  const hidden = { config: { scope: null }, schema: { hide: true } }
  for (const url of ['/openapi.json', '/spec.json']) app.get(url, hidden, (_request, reply) => reply.type('application/json; charset=utf-8').send(json()))
  app.get('/spec.yaml', hidden, (_request, reply) => reply.type('application/yaml; charset=utf-8').send(yaml()))
}

function document (schema: FastifySchema | undefined, route: RouteOptions, url: string, groups: ReadonlySet<string>): FastifySchema {
  const scope = route.config?.scope ?? null
  const first = url.split('/')[1] ?? ''
  const operationId = schema?.operationId ?? operationIdOf([route.method].flat()[0] ?? 'GET', url)
  return {
    ...(first === '' ? {} : { tags: [groups.has(first) ? first : 'server'] }),
    summary: summaryOf(operationId),
    ...schema,
    operationId,
    ...schema?.params === undefined ? {} : { params: named(schema.params) },
    description: [schema?.description, scope === null ? 'Needs no key.' : scope === ANY_KEY ? 'Any key will do.' : `Needs the scope \`${scope}\`.`].filter((part) => part !== undefined).join('\n\n'),
    ...(scope === null ? { security: [] } : {}),
    // the WebSocket plugin hides them
    ...(route.websocket === true ? { hide: false } : {}),
    'x-route': notesOf(route)
  } as FastifySchema
}

/** The rest of a path, which Fastify writes as `*`, gets a name here. */
function named (params: unknown): unknown {
  const text = JSON.stringify(params)
  return text.includes('"*"') ? JSON.parse(text.replaceAll('"*"', '"name"')) : params
}

function notesOf ({ config, websocket }: RouteOptions): RouteNotes {
  return {
    idempotent: config?.idempotent === true,
    websocket: websocket === true,
    optionalBody: config?.optionalBody === true,
    errorCodes: config?.errorCodes ?? {},
    ...config?.produces === undefined ? {} : { produces: config.produces },
    ...config?.accepts === undefined ? {} : { accepts: config.accepts }
  }
}

function once<T> (make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
