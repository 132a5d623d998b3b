// Gives query and path values the types of their schemas. Bodies are JSON and carry their types; they are never coerced.
import type { onRequestHookHandler, RouteOptions } from 'fastify'

type Coerce = (value: unknown) => unknown

const COERCIONS: Readonly<Record<string, Coerce>> = {
  integer: toNumber,
  number: toNumber,
  boolean: (value) => value === 'true' ? true : value === 'false' ? false : value,
  // `?state=Running` is a list with one item
  array: (value) => value === undefined || Array.isArray(value) ? value : [value]
}

/** A hook that coerces a route's query and path values; undefined when all of them are strings. The validator refuses what cannot be coerced. */
export function coercionFor (route: RouteOptions): onRequestHookHandler | undefined {
  const query = coercions(route.schema?.querystring)
  const params = coercions(route.schema?.params)
  if (query.length === 0 && params.length === 0) return undefined
  return (request, _reply, done) => {
    apply(query, request.query)
    apply(params, request.params)
    done()
  }
}

function coercions (schema: unknown): ReadonlyArray<readonly [string, Coerce]> {
  if (typeof schema !== 'object' || schema === null || !('properties' in schema)) return []
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]: [string, unknown]) => {
    const type = typeof property === 'object' && property !== null && 'type' in property ? property.type : undefined
    const coerce = typeof type === 'string' ? COERCIONS[type] : undefined
    return coerce === undefined ? [] : [[name, coerce] as const]
  })
}

function apply (list: ReadonlyArray<readonly [string, Coerce]>, values: unknown): void {
  if (typeof values !== 'object' || values === null) return
  for (const [name, coerce] of list) {
    if (name in values) Reflect.set(values, name, coerce(Reflect.get(values, name)))
  }
}

function toNumber (value: unknown): unknown {
  return typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value
}
