// The little that core needs to know about JSON schemas in order to walk them beside a value.

import type { TSchema } from 'typebox'

export type Mapping = Record<string, unknown>
export type JsonSchema = Readonly<Record<string, unknown>>

export function isMapping (value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A TypeBox schema, typed as the JSON schema that it is. */
export function jsonSchema (schema: TSchema): JsonSchema {
  return { ...schema }
}

/** A value as a schema; `undefined` for `true`, `false` and what is absent. */
export function schemaOf (value: unknown): JsonSchema | undefined {
  return isMapping(value) ? value : undefined
}

/** The schema of one member of an object or array; `undefined` when the schema does not say. */
export function memberSchema (schema: JsonSchema, key: string): JsonSchema | undefined {
  const properties = schemaOf(schema['properties'])
  if (properties !== undefined && key in properties) return schemaOf(properties[key])
  const patterns = schemaOf(schema['patternProperties']) ?? {}
  const pattern = Object.keys(patterns).find(candidate => new RegExp(candidate).test(key))
  return schemaOf(pattern === undefined ? undefined : patterns[pattern]) ?? schemaOf(schema['additionalProperties']) ?? schemaOf(schema['items'])
}

/** The schema at a path; `undefined` when the path leads through something other than a plain object or array. */
export function schemaAt (schema: JsonSchema, path: readonly string[]): JsonSchema | undefined {
  return path.reduce<JsonSchema | undefined>((at, key) => at === undefined ? undefined : memberSchema(at, key), schema)
}
