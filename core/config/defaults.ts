// Fills in the defaults of a JSON schema. TypeBox's own `Default` ignores plain JSON schemas, and a third party's plugin may use one.
import { isMapping, schemaOf, type JsonSchema, type Mapping } from './json-schema.ts'

/**
 * The value with every default filled in; the given value is not changed. A required object that is absent counts as
 * empty, so the defaults of its members apply. A key without a value (YAML's null) counts as absent.
 */
export function withDefaults (schema: JsonSchema, value: unknown): unknown {
  const given = value === null && !allowsNull(schema) ? undefined : value
  const present = given ?? structuredClone(schema['default'])
  if (Array.isArray(present)) {
    const items = schemaOf(schema['items'])
    return items === undefined ? present : present.map(item => withDefaults(items, item))
  }
  return isMapping(present) ? fillMembers(schema, present) : present
}

function fillMembers (schema: JsonSchema, value: Mapping): Mapping {
  const filled: Mapping = { ...value }
  const properties = isMapping(schema['properties']) ? schema['properties'] : {}
  const required: unknown[] = Array.isArray(schema['required']) ? schema['required'] : []
  for (const [key, raw] of Object.entries(properties)) {
    const member = schemaOf(raw)
    if (member === undefined) continue
    const isImplied = required.includes(key) && member['type'] === 'object'
    const result = withDefaults(member, filled[key] ?? (isImplied && member['default'] === undefined ? {} : filled[key]))
    if (result === undefined) delete filled[key]
    else filled[key] = result
  }
  const rest = schemaOf(schema['additionalProperties']) ?? firstPattern(schema)
  if (rest !== undefined) {
    for (const key of Object.keys(filled)) if (!(key in properties)) filled[key] = withDefaults(rest, filled[key])
  }
  return filled
}

/** The schema of a record's values; TypeBox writes it as the record's only pattern. */
function firstPattern (schema: JsonSchema): JsonSchema | undefined {
  return isMapping(schema['patternProperties']) ? schemaOf(Object.values(schema['patternProperties'])[0]) : undefined
}

function allowsNull (schema: JsonSchema): boolean {
  const branches: unknown[] = Array.isArray(schema['anyOf']) ? schema['anyOf'] : []
  const types: unknown[] = Array.isArray(schema['type']) ? schema['type'] : [schema['type']]
  return types.includes('null') || Object.keys(schema).length === 0 || branches.some(branch => isMapping(branch) && branch['type'] === 'null')
}
