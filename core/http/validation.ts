// Turns what the schema validator found into sentences that name the field and the rule.
import type { FastifySchemaValidationError } from 'fastify'
import { distance } from 'fastest-levenshtein'
import type { ErrorDetail } from '../errors/define.ts'

const MAX_DETAILS = 20
const MAX_IN_MESSAGE = 3
/** a longer word is not compared with the known fields */
const MAX_NAME = 256

/** Settings of the validator: it removes nothing, guesses nothing, and finds all faults. */
export const validatorOptions = {
  removeAdditional: false,
  coerceTypes: false,
  useDefaults: true,
  allErrors: true,
  // gives each fault its schema, for the known field names
  verbose: true,
  strictTypes: false,
  strictTuples: false,
  strictRequired: false,
  allowUnionTypes: true,
  keywords: ['rule', 'secret', 'example']
} as const

interface Fault extends FastifySchemaValidationError {
  readonly schema?: unknown
  readonly parentSchema?: unknown
  readonly data?: unknown
  readonly propertyName?: string
}

/** A request that does not fit its route's schema. Fastify writes its own fields into it, so it is not a BerthError. */
export class ValidationFailure extends Error {
  readonly details: readonly ErrorDetail[]

  constructor (message: string, details: readonly ErrorDetail[]) {
    super(message)
    this.details = details
    // Fastify attaches what the validator found, and with it values of the request, which may be secret and must not be logged.
    Object.defineProperty(this, 'validation', { writable: true, enumerable: false, value: undefined })
  }
}

/** Fastify's `schemaErrorFormatter`. `part` is `body`, `querystring`, `params` or `headers`; or `message`, of a WebSocket. */
export function describeFaults (errors: readonly FastifySchemaValidationError[], part: string): ValidationFailure {
  const details = withoutBranches(errors).slice(0, MAX_DETAILS).map((fault) => describe(fault, part))
  const messages = [...new Set(details.map((detail) => detail.message))]
  const more = messages.length - MAX_IN_MESSAGE
  const message = messages.slice(0, MAX_IN_MESSAGE).join('; ') + (more > 0 ? `; and ${more} more` : '')
  return new ValidationFailure(message, details)
}

// For a union, the faults of its branches say less than the union's own.
function withoutBranches (errors: readonly Fault[]): readonly Fault[] {
  // Indexed by place: a list may have a union in each of its thousands of items.
  const unions = new Map<string, Fault[]>()
  for (const error of errors) {
    if (error.keyword === 'anyOf' || error.keyword === 'oneOf') unions.set(error.instancePath, [...unions.get(error.instancePath) ?? [], error])
  }
  return errors.filter((error) => error.propertyName === undefined || error.keyword === 'propertyNames')
    .filter((error) => unions.get(error.instancePath)?.some((union) => union !== error && error.schemaPath.startsWith(`${union.schemaPath}/`)) !== true)
}

function describe (fault: Fault, part: string): ErrorDetail {
  const extra = fault.params['additionalProperty'] ?? fault.params['missingProperty']
  const place = placeOf(fault.instancePath, typeof extra === 'string' ? extra : undefined, part)
  return { code: fault.keyword === 'additionalProperties' ? 'unknown_field' : fault.keyword, message: `${place} ${ruleOf(fault, part)}` }
}

// `/volumes/0/mount_path` → `volumes[0].mount_path`
function placeOf (path: string, extra: string | undefined, part: string): string {
  const steps = path.split('/').slice(1).map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  if (extra !== undefined) steps.push(extra)
  const text = steps.map((step) => /^\d+$/.test(step) ? `[${step}]` : /^[\w-]+$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`).join('').replace(/^\./, '')
  if (part === 'querystring') return text === '' ? 'the query' : `query parameter ${text}`
  if (part === 'params') return `path parameter ${text}`
  if (part === 'headers') return `header ${text}`
  if (part === 'message') return text === '' ? 'the message' : text
  return text === '' ? 'the request body' : text
}

function ruleOf (fault: Fault, part: string): string {
  const { params } = fault
  const own = field(fault.parentSchema, 'rule')
  if (typeof own === 'string') return own
  switch (fault.keyword) {
    case 'required': return 'is required'
    case 'additionalProperties': return unknownField(fault)
    case 'type': return typeRule(fault, part)
    case 'enum': return `must be one of ${list(params['allowedValues'])}`
    case 'const': return `must be ${JSON.stringify(params['allowedValue'])}`
    case 'anyOf': case 'oneOf': return unionRule(fault)
    case 'pattern': return `must match ${String(params['pattern'])}`
    case 'format': return formatRule(String(params['format']))
    case 'propertyNames': return `has the key ${JSON.stringify(params['propertyName'])}, which is not allowed: ${keyRule(field(fault.schema, 'rule'))}`
    case 'minLength': return count('at least', params['limit'], 'character')
    case 'maxLength': return count('at most', params['limit'], 'character')
    case 'minItems': return count('at least', params['limit'], 'item')
    case 'maxItems': return count('at most', params['limit'], 'item')
    case 'minProperties': return count('at least', params['limit'], 'entry', 'entries')
    case 'maxProperties': return count('at most', params['limit'], 'entry', 'entries')
    case 'minimum': return `must be at least ${String(params['limit'])}`
    case 'maximum': return `must be at most ${String(params['limit'])}`
    case 'exclusiveMinimum': return `must be greater than ${String(params['limit'])}`
    case 'exclusiveMaximum': return `must be less than ${String(params['limit'])}`
    case 'multipleOf': return `must be a multiple of ${String(params['multipleOf'])}`
    case 'uniqueItems': return `must not repeat an item (items ${String(params['j'])} and ${String(params['i'])} are the same)`
    default: return fault.message ?? 'is not allowed'
  }
}

function unknownField (fault: Fault): string {
  const name = String(fault.params['additionalProperty'])
  const properties = field(fault.parentSchema, 'properties')
  const known = typeof properties === 'object' && properties !== null && name.length <= MAX_NAME ? Object.keys(properties) : []
  const nearest = known.map((candidate) => ({ candidate, far: distance(name.toLowerCase(), candidate.toLowerCase()) })).sort((a, b) => a.far - b.far)[0]
  // more differences than half of the word are no similarity
  const hint = nearest !== undefined && nearest.far <= Math.max(2, Math.floor(name.length / 2)) ? `; did you mean ${nearest.candidate}?` : ''
  return `is not a known field${hint}`
}

function typeRule (fault: Fault, part: string): string {
  const type = fault.params['type']
  if (fault.instancePath === '' && part === 'body') {
    return fault.data === null ? 'is required: send a JSON object with content-type application/json' : `must be a JSON ${String(type)}`
  }
  return `must be ${article(Array.isArray(type) ? type.join(' or ') : String(type))}`
}

function unionRule (fault: Fault): string {
  const branches = Array.isArray(fault.schema) ? fault.schema.map((branch: unknown) => ({ constant: field(branch, 'const'), type: field(branch, 'type') })) : []
  if (branches.length > 0 && branches.every(({ constant }) => constant !== undefined)) return `must be one of ${list(branches.map(({ constant }) => constant))}`
  const types = branches.map(({ type }) => type).filter((type) => typeof type === 'string')
  return types.length === branches.length && types.length > 0 ? `must be ${article([...new Set(types)].join(' or '))}` : 'has none of the allowed forms'
}

function keyRule (rule: unknown): string {
  return typeof rule === 'string' ? rule : 'it breaks the rule for keys'
}

function formatRule (format: string): string {
  return format === 'date-time' ? 'must be a date and time such as 2026-01-31T12:00:00Z' : `must be a valid ${format}`
}

function count (bound: string, limit: unknown, singular: string, plural = `${singular}s`): string {
  return `must have ${bound} ${String(limit)} ${limit === 1 ? singular : plural}`
}

function list (values: unknown): string {
  return Array.isArray(values) ? values.map((value) => typeof value === 'string' ? value : JSON.stringify(value)).join(', ') : String(values)
}

function article (type: string): string {
  return type === 'null' ? type : `${/^[aeio]/.test(type) ? 'an' : 'a'} ${type}`
}

function field (value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && name in value ? Reflect.get(value, name) : undefined
}
