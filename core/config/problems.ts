// Turns what a schema finds wrong with a configuration into sentences for its author.
import { closest, distance } from 'fastest-levenshtein'
import type { TSchema } from 'typebox'
import { Settings } from 'typebox/system'
import { Value } from 'typebox/value'
import { isMapping, jsonSchema, schemaAt, schemaOf } from './json-schema.ts'

export interface ConfigProblem {
  readonly path: readonly string[]
  /** the rest of a sentence that begins with the path */
  readonly rule: string
}

const MAX_FINDINGS = 1000

type Finding = ReturnType<typeof Value.Errors>[number]

/** Everything in `value` that the schema does not allow, one problem for each place. */
export function findProblems (schema: TSchema, value: unknown): ConfigProblem[] {
  const problems = new Map<string, ConfigProblem>()
  for (const finding of allFindings(schema, value)) {
    for (const problem of describe(schema, value, finding)) {
      const place = JSON.stringify(problem.path)
      if (!problems.has(place)) problems.set(place, problem)
    }
  }
  return [...problems.values()]
}

/** TypeBox stops after a number of errors that only its global settings hold; they are put back before any other code runs. */
function allFindings (schema: TSchema, value: unknown): Finding[] {
  const { maxErrors } = Settings.Get()
  Settings.Set({ maxErrors: MAX_FINDINGS })
  try {
    return Value.Errors(schema, value)
  } finally {
    Settings.Set({ maxErrors })
  }
}

/** The candidate that was probably meant; `undefined` when none is similar. */
export function nearest (written: string, candidates: readonly string[]): string | undefined {
  if (candidates.length === 0) return undefined
  const best = closest(written, candidates)
  return distance(written.toLowerCase(), best.toLowerCase()) <= Math.max(2, Math.floor(best.length / 3)) ? best : undefined
}

/** A path as people write it: `server.metrics.listen`. */
export function dotted (path: readonly string[]): string {
  return path.join('.')
}

function describe (schema: TSchema, value: unknown, finding: Finding): ConfigProblem[] {
  const path = partsOf(finding.instancePath)
  const at = schemaAt(jsonSchema(schema), path)
  switch (finding.keyword) {
    case 'boolean': return []
    case 'additionalProperties': return unknownKeys(path, finding.params.additionalProperties, Object.keys(schemaOf(at?.['properties']) ?? {}))
    case 'required': return finding.params.requiredProperties.map(key => ({ path: [...path, key], rule: 'is required' }))
    default: return [{ path, rule: `${ruleOf(at, finding)}${shown(valueAt(value, path), at)}` }]
  }
}

function unknownKeys (path: readonly string[], keys: readonly string[], known: readonly string[]): ConfigProblem[] {
  return keys.map(key => {
    const meant = nearest(key, known)
    return { path: [...path, key], rule: `is not a known key${meant === undefined ? '' : `; did you mean "${meant}"?`}` }
  })
}

/** The rule in words when the schema has a `rule`; a pattern alone tells people nothing. */
function ruleOf (schema: ReturnType<typeof schemaAt>, finding: Finding): string {
  if (typeof schema?.['rule'] === 'string') return schema['rule']
  const branches = schema?.['anyOf']
  if (Array.isArray(branches)) {
    const choices = branches.map(branch => isMapping(branch) && 'const' in branch ? JSON.stringify(branch['const']) : undefined)
    return choices.includes(undefined) ? 'has none of the allowed forms' : `must be one of ${choices.join(', ')}`
  }
  switch (finding.keyword) {
    case 'type': return `must be ${article(String(finding.params.type))}`
    case 'enum': return `must be one of ${finding.params.allowedValues.map(choice => JSON.stringify(choice)).join(', ')}`
    default: return finding.message
  }
}

function article (type: string): string {
  const word = { object: 'mapping', array: 'list', boolean: 'true or false' }[type] ?? type
  if (word === 'true or false') return word
  return `${/^[aeiou]/.test(word) ? 'an' : 'a'} ${word}`
}

function shown (value: unknown, schema: ReturnType<typeof schemaAt>): string {
  if (schema?.['secret'] !== undefined || (typeof value === 'object' && value !== null)) return ''
  const text = JSON.stringify(value) ?? 'nothing'
  return `, not ${text.length > 60 ? `${text.slice(0, 60)}…` : text}`
}

function partsOf (pointer: string): string[] {
  return pointer.split('/').slice(1).map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function valueAt (value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, key) => Array.isArray(at) ? at[Number(key)] : isMapping(at) ? at[key] : undefined, value)
}
