// Checks the first message of a socket: JSON of a closed shape.
import { Type, type Static, type TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { InvalidRequest } from '../../../core/errors/common.ts'
import { mapOf, oneOf } from '../../../core/http/schemas.ts'
import { checkEnv } from '../validate/env.ts'

const closed = { additionalProperties: false } as const
const Text = Type.String({ maxLength: 131_071, pattern: '^[^\\u0000]*$' })
const GuestPath = Type.String({ minLength: 1, maxLength: 4096, pattern: '^[^\\u0000]*$' })
const Cells = Type.Integer({ minimum: 1, maximum: 10_000 })
const Id = Type.Integer({ minimum: 0, maximum: 4_294_967_294 })

export const ExecRequest = Type.Object({
  command: Type.Optional(Type.Array(Text, { maxItems: 4096 })),
  tty: Type.Optional(Type.Boolean()),
  env: Type.Optional(mapOf(Text)),
  cwd: Type.Optional(GuestPath),
  user: Type.Optional(Type.String({ maxLength: 128 })),
  timeout: Type.Optional(Type.Number({ minimum: 0, maximum: 31_536_000 })),
  wait_for_agent: Type.Optional(Type.Number({ minimum: 0, maximum: 3600 })),
  rows: Type.Optional(Cells),
  cols: Type.Optional(Cells),
  streams: Type.Optional(Type.Boolean()),
  stdin: Type.Optional(Type.Boolean()),
  control: Type.Optional(Type.Boolean())
}, closed)
export type ExecRequest = Static<typeof ExecRequest>

export const ExecControl = Type.Object({
  resize: Type.Optional(Type.Object({ rows: Cells, cols: Cells }, closed)),
  signal: Type.Optional(Type.Union([Type.String({ maxLength: 16 }), Type.Integer({ minimum: 1, maximum: 64 })])),
  stdin: Type.Optional(oneOf(['close']))
}, { ...closed, minProperties: 1 })
export type ExecControl = Static<typeof ExecControl>

export const CpRequest = Type.Object({
  direction: oneOf(['to', 'from', 'stat']),
  guest_path: GuestPath,
  is_dir: Type.Optional(Type.Boolean()),
  mode: Type.Optional(Type.Integer({ minimum: 0, maximum: 0o7777 })),
  follow_links: Type.Optional(Type.Boolean()),
  src_basename: Type.Optional(Type.String({ maxLength: 255, pattern: '^[^\\u0000/]*$' })),
  uid: Type.Optional(Id),
  gid: Type.Optional(Id)
}, closed)
export type CpRequest = Static<typeof CpRequest>

/** @throws InvalidRequest naming the field */
export function parseExecRequest (text: string): ExecRequest {
  const request = parse(ExecRequest, text)
  checkEnv('env', request.env)
  return request
}

/** @throws InvalidRequest naming the field */
export function parseCpRequest (text: string): CpRequest {
  return parse(CpRequest, text)
}

/** @throws InvalidRequest naming the field */
export function parseControl (text: string): ExecControl {
  return parse(ExecControl, text)
}

/** A resize as compatible clients send it; any other text is their standard input. */
export function resizeIn (text: string): ExecControl['resize'] {
  if (!text.startsWith('{')) return undefined
  try {
    return parseControl(text).resize
  } catch (error) {
    if (InvalidRequest.is(error)) return undefined
    throw error
  }
}

function parse<S extends TSchema> (schema: S, text: string): Static<S> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw InvalidRequest.from(error, 'the message must be JSON')
  }
  if (Value.Check(schema, value)) return value
  const [fault] = Value.Errors(schema, value)
  const place = (fault?.instancePath ?? '').slice(1).replaceAll('/', '.')
  const named = fault?.keyword === 'additionalProperties' || fault?.keyword === 'required' ? ` (${JSON.stringify(fault.params)})` : ''
  throw InvalidRequest(`${place === '' ? 'the message' : place} ${fault?.message ?? 'is not valid'}${named}`)
}
