// Hides secrets in a configuration before it is printed: whatever a schema marks `secret`.
import { isMapping, memberSchema, schemaOf, type JsonSchema } from './json-schema.ts'

const MASK = '***'

/** A copy in which each value under `secret: true` is `***`, and each under `secret: 'url'` has its password replaced by it. */
export function maskSecrets (schema: JsonSchema, value: unknown): unknown {
  const marks = [schema, ...branchesOf(schema)].map(branch => branch['secret'])
  if (marks.includes(true)) return value === undefined || value === '' ? value : MASK
  if (marks.includes('url') && typeof value === 'string') return maskUrl(value)
  if (Array.isArray(value)) return value.map((item, index) => maskMember(schema, String(index), item))
  if (isMapping(value)) return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, maskMember(schema, key, member)]))
  return value
}

/** A database URL without its password, whether the password stands before the host or among the parameters. */
export function maskUrl (url: string): string {
  return url
    .replace(/^([a-z][a-z0-9+]*:\/\/[^/@:]*):.*@/i, `$1:${MASK}@`)
    .replace(/([?&](?:password|passwd|pwd)=)[^&]*/gi, `$1${MASK}`)
}

function maskMember (schema: JsonSchema, key: string, value: unknown): unknown {
  const members = [schema, ...branchesOf(schema)].map(branch => memberSchema(branch, key)).filter(member => member !== undefined)
  return members.reduce<unknown>((masked, member) => maskSecrets(member, masked), value)
}

function branchesOf (schema: JsonSchema): JsonSchema[] {
  return ['anyOf', 'oneOf', 'allOf'].flatMap(key => {
    const branches: unknown = schema[key]
    return Array.isArray(branches) ? branches.map(branch => schemaOf(branch)).filter(branch => branch !== undefined) : []
  })
}
