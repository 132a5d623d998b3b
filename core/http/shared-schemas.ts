// Makes every schema with an `$id` a named one: routes hold it inline, Fastify and the OpenAPI document get one definition and references.
import type { FastifyInstance, RouteOptions } from 'fastify'

/**
 * Replaces each inline schema that has an `$id` by a reference, and registers it where the route lives and at the root, so that plugins
 * mounted later can refer to it by `namedSchema`.
 */
export function shareSchemas (root: FastifyInstance, instance: FastifyInstance, route: RouteOptions): void {
  if (route.schema === undefined) return
  route.schema = Object.fromEntries(Object.entries(route.schema).map(([part, schema]) => [part, replace([root, instance], schema, route.url)]))
}

/** The named schemas that were registered, and where: most routes of a plugin hold the same few large objects. */
const registered = new WeakMap<object, WeakSet<FastifyInstance>>()

function replace (contexts: readonly FastifyInstance[], value: unknown, place: string): unknown {
  if (Array.isArray(value)) return value.map((item) => replace(contexts, item, place))
  if (typeof value !== 'object' || value === null) return value
  const known = registered.get(value)
  if ('$id' in value && typeof value.$id === 'string' && known !== undefined && contexts.every((context) => known.has(context))) return { $ref: `${value.$id}#` }
  const copy = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replace(contexts, item, place)]))
  const id = copy['$id']
  if (typeof id !== 'string') return copy
  const where = known ?? new WeakSet()
  for (const context of contexts) {
    register(context, id, copy, place)
    where.add(context)
  }
  registered.set(value, where)
  return { $ref: `${id}#` }
}

function register (context: FastifyInstance, id: string, schema: Record<string, unknown>, place: string): void {
  const known = context.getSchema(id)
  if (known === undefined) {
    context.addSchema(schema)
  } else if (JSON.stringify(known) !== JSON.stringify(schema)) {
    throw new Error(`route ${place}: the schema name ${id} is already used for another schema`)
  }
}
