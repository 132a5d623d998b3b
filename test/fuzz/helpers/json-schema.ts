// Values that a JSON schema describes, as far as the API's document uses it.
import type { Random } from '../fuzz.ts'
import type { Json } from './policy-values.ts'

export interface JsonSchema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly Json[]
  readonly const?: Json
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly additionalProperties?: boolean | JsonSchema
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>
  readonly minimum?: number
  readonly maximum?: number
}

const TEXTS = ['a', 'web', 'one-two', 'A', '1', '1GB', '64MB', '10s', '100MB/s', 'localhost/none', 'Running', '/bin/sh', '/data', '2026-01-01T00:00:00Z', '10.0.0.0/8', '0000:01:00.0', 'x'.repeat(64), 'x'.repeat(1_000), 'é', ' ', ''] as const

/** A value of it, often. */
export function valueOf (random: Random, schema: JsonSchema | undefined, depth = 0): Json {
  if (schema === undefined || depth > 8) return random.pick(TEXTS)
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return random.pick(schema.enum)
  const branches = schema.anyOf ?? schema.oneOf
  if (branches !== undefined) return valueOf(random, random.pick(branches), depth + 1)
  const type = typeof schema.type === 'string' ? schema.type : schema.type?.[0]
  if (type === 'boolean') return random.once(2)
  if (type === 'integer' || type === 'number') return numberOf(random, schema)
  if (type === 'array') return random.many(3, () => valueOf(random, schema.items, depth + 1))
  if (type === 'null') return null
  if (type === 'object' || schema.properties !== undefined) return objectOf(random, schema, depth)
  return random.pick(TEXTS)
}

function numberOf (random: Random, { minimum = 0, maximum = 1_000_000 }: JsonSchema): number {
  return random.pick([minimum, maximum, minimum + 1, minimum - 1, maximum + 1, 1, 1.5])
}

function objectOf (random: Random, schema: JsonSchema, depth: number): Json {
  const wanted = Object.entries(schema.properties ?? {}).filter(([name]) => schema.required?.includes(name) === true ? !random.once(30) : random.once(3))
  const rest = Object.values(schema.patternProperties ?? {})[0] ?? (typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined)
  const others = rest === undefined ? [] : random.many(2, (): [string, Json] => [random.pick(['KEY', 'team', 'a b', '__proto__', '']), valueOf(random, rest, depth + 1)])
  return Object.fromEntries([...wanted.map(([name, one]): [string, Json] => [name, valueOf(random, one, depth + 1)]), ...others])
}
