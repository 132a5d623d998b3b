// Makes every schema with an `$id` a named one: routes hold it inline, Fastify and the OpenAPI document get one definition and references.
import type { FastifyInstance, RouteOptions } from 'fastify'

/** Replaces each inline schema that has an `$id` by a reference, and registers it where the route lives. */
export function shareSchemas (instance: FastifyInstance, route: RouteOptions): void {
  if (route.schema === undefined) return
  route.schema = Object.fromEntries(Object.entries(route.schema).map(([part, schema]) => [part, replace(instance, schema, route.url)]))
}

function replace (instance: FastifyInstance, value: unknown, place: string): unknown {
  if (Array.isArray(value)) return value.map((item) => replace(instance, item, place))
  if (typeof value !== 'object' || value === null) return value
  const copy = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replace(instance, item, place)]))
  const id = copy['$id']
  if (typeof id !== 'string') return copy
  register(instance, id, copy, place)
  return { $ref: `${id}#` }
}

function register (instance: FastifyInstance, id: string, schema: Record<string, unknown>, place: string): void {
  const known = instance.getSchema(id)
  if (known === undefined) {
    instance.addSchema(schema)
  } else if (JSON.stringify(known) !== JSON.stringify(schema)) {
    throw new Error(`route ${place}: the schema name ${id} is already used for another schema`)
  }
}
