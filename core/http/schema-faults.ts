// Finds faults of a schema without compiling it. A server's start does only this; what is left for the first use are faults that a test of the plugin finds (see compileAll).

const ONE = ['additionalItems', 'additionalProperties', 'contains', 'else', 'if', 'items', 'not', 'propertyNames', 'then']
const LIST = ['allOf', 'anyOf', 'items', 'oneOf']
const BY_NAME = ['$defs', 'definitions', 'dependencies', 'patternProperties', 'properties']

/** The keywords of JSON Schema that the validator of requests knows. */
export const KEYWORDS: readonly string[] = [
  ...ONE, ...LIST, ...BY_NAME, '$comment', '$id', '$ref', '$schema', 'const', 'contentEncoding', 'contentMediaType', 'default', 'deprecated', 'description', 'enum', 'examples',
  'exclusiveMaximum', 'exclusiveMinimum', 'format', 'formatExclusiveMaximum', 'formatExclusiveMinimum', 'formatMaximum', 'formatMinimum', 'maxItems', 'maxLength', 'maxProperties', 'maximum',
  'minItems', 'minLength', 'minProperties', 'minimum', 'multipleOf', 'nullable', 'pattern', 'readOnly', 'required', 'title', 'type', 'uniqueItems', 'writeOnly'
]

/**
 * @param named schemas that it may refer to
 * @param known all known keywords; absent: keywords are not checked
 * @throws Error that names a missing schema that it refers to, or an unknown keyword
 */
export function checkSchema (schema: unknown, named: Readonly<Record<string, unknown>>, known?: ReadonlySet<string>): void {
  if (typeof schema !== 'object' || schema === null) return
  for (const [keyword, value] of Object.entries(schema)) {
    if (known?.has(keyword) === false) throw new Error(`unknown keyword "${keyword}" in a schema`)
    if (keyword === '$ref') checkReference(value, named)
    else for (const each of within(keyword, value)) checkSchema(each, named, known)
  }
}

function checkReference (value: unknown, named: Readonly<Record<string, unknown>>): void {
  const name = typeof value === 'string' ? value.split('#', 1)[0] ?? '' : undefined
  if (name === undefined || (name !== '' && !Object.hasOwn(named, name))) throw new Error(`a schema refers to ${JSON.stringify(value)}, which is not there`)
}

/** The schemas in the value of a keyword. */
function within (keyword: string, value: unknown): readonly unknown[] {
  if (LIST.includes(keyword) && Array.isArray(value)) return value
  if (ONE.includes(keyword)) return [value]
  // Of `dependencies` some are lists of names.
  return BY_NAME.includes(keyword) ? Object.values(Object(value)).filter((each) => !Array.isArray(each)) : []
}
