// Checks the first message of a socket: JSON of a closed shape.
import { Type, type Static } from 'typebox'
import { InvalidRequest } from '../../../core/errors/common.ts'
import { messageReader } from '../../../core/http/json-message.ts'
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

/** more than any command has */
const MAX_CONTROL_CHARACTERS = 4096
/** more than any resize has */
const MAX_RESIZE_CHARACTERS = 256

const readExecRequest = messageReader(ExecRequest)
const readControl = messageReader(ExecControl)

/** @throws InvalidRequest naming the field */
export function parseExecRequest (text: string): ExecRequest {
  const request = readExecRequest(text)
  checkEnv('env', request.env)
  return request
}

/** @throws InvalidRequest naming the field */
export const parseCpRequest: (text: string) => CpRequest = messageReader(CpRequest)

/** @throws InvalidRequest naming the field */
export function parseControl (text: string): ExecControl {
  if (text.length > MAX_CONTROL_CHARACTERS) throw InvalidRequest(`the message must have at most ${MAX_CONTROL_CHARACTERS} characters: with control, standard input comes in binary messages`)
  return readControl(text)
}

/** A resize as compatible clients send it; any other text is their standard input. */
export function resizeIn (text: string): ExecControl['resize'] {
  if (text.length > MAX_RESIZE_CHARACTERS || !text.startsWith('{')) return undefined
  try {
    return readControl(text).resize
  } catch (error) {
    if (InvalidRequest.is(error)) return undefined
    throw error
  }
}
