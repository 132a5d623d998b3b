// Turns the texts of a form into the body of a request.
import type { Schema } from './schema.ts'

/** texts as typed, by the path of the field: `network.egress.enabled` */
export type Typed = Readonly<Record<string, string>>

export class FieldError extends Error {
  readonly field: string

  constructor (field: string, message: string) {
    super(message)
    this.field = field
  }
}

/** The kind of input for a field. */
export function kindOf (schema: Schema): 'object' | 'map' | 'list' | 'choice' | 'truth' | 'number' | 'text' | 'json' {
  if (schema.enum !== undefined) return 'choice'
  const type = typeof schema.type === 'string' ? schema.type : schema.type?.find((each) => each !== 'null')
  if (type === 'object' && schema.properties !== undefined) return 'object'
  if (type === 'object') return typeof schema.additionalProperties === 'object' && kindOf(schema.additionalProperties) === 'text' ? 'map' : 'json'
  if (type === 'array') return schema.items !== undefined && ['text', 'choice', 'number'].includes(kindOf(schema.items)) ? 'list' : 'json'
  if (type === 'boolean') return 'truth'
  if (type === 'integer' || type === 'number') return 'number'
  return type === 'string' ? 'text' : 'json'
}

/** @throws FieldError */
export function bodyOf (schema: Schema, typed: Typed, prefix = ''): Record<string, unknown> | undefined {
  const body: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const place = prefix + name
    const value = kindOf(member) === 'object' ? bodyOf(member, typed, `${place}.`) : valueOf(member, typed[place] ?? '', place)
    if (value !== undefined) body[name] = value
  }
  return prefix !== '' && Object.keys(body).length === 0 ? undefined : body
}

function valueOf (schema: Schema, text: string, place: string): unknown {
  if (text.trim() === '') return undefined
  switch (kindOf(schema)) {
    case 'truth': return text === 'true'
    case 'number': return numberOf(text, place)
    case 'list': return text.split('\n').filter((line) => line !== '').map((line) => kindOf(schema.items ?? {}) === 'number' ? numberOf(line, place) : line)
    case 'map': return mapOf(text, place)
    case 'json': return jsonOf(text, place)
    default: return text
  }
}

function numberOf (text: string, place: string): number {
  const value = Number(text)
  if (!Number.isFinite(value)) throw new FieldError(place, 'must be a number')
  return value
}

function mapOf (text: string, place: string): Record<string, string> {
  return Object.fromEntries(text.split('\n').filter((line) => line.trim() !== '').map((line) => {
    const equals = line.indexOf('=')
    if (equals < 1) throw new FieldError(place, `“${line}” must be like NAME=value`)
    return [line.slice(0, equals), line.slice(equals + 1)]
  }))
}

function jsonOf (text: string, place: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new FieldError(place, 'must be JSON')
  }
}
