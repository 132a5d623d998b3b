// Speaks with the proxy over its control socket. The body of a request may hold secrets, so no error of this file contains any of it.
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { basename, dirname } from 'node:path'
import { Type, type Static, type TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { connectUnix, takesConnections } from '../../../core/process/unix-socket.ts'
import type { AuditEntry, ControlRefusal, OwnRanges, PolicyChange, PolicyRevision, TracedEntry } from '../../../proxy/contract/control.ts'

/** An answer other than 200. */
export class ControlRefused extends Error {
  override readonly name = 'ControlRefused'
  readonly status: number
  readonly at: ControlRefusal['at']
  readonly revision: ControlRefusal['revision']

  constructor (status: number, message: string, { at, revision }: Pick<ControlRefusal, 'at' | 'revision'> = {}) {
    super(message)
    this.status = status
    this.at = at
    this.revision = revision
  }
}

const NO_REASON = 'it gave no reason'
const State = Type.Object({ revision: Type.Union([Type.Integer(), Type.Null()]), vms: Type.Integer() })
const Ranges = Type.Object({ allowPrivate: Type.Array(Type.String()), deny: Type.Array(Type.String()) })
const Acknowledged = Type.Object({ revision: Type.Integer() })
const Refused = Type.Object({
  message: Type.String(),
  at: Type.Optional(Type.Object({ field: Type.String(), index: Type.Optional(Type.Integer({ minimum: 0 })) })),
  revision: Type.Optional(Type.Integer({ minimum: 0 }))
})
const Protocols: readonly AuditEntry['protocol'][] = ['http/1.1', 'h2', 'websocket', 'tls', 'tcp', 'dns']
const Request = Type.Object({
  time: Type.String(),
  vm: Type.String(),
  revision: Type.Integer(),
  protocol: Type.Enum([...Protocols]),
  host: Type.String(),
  port: Type.Integer(),
  method: Type.Optional(Type.String()),
  path: Type.Optional(Type.String()),
  status: Type.Optional(Type.Integer()),
  injected: Type.Array(Type.String()),
  reason: Type.Optional(Type.String()),
  bytesIn: Type.Number(),
  bytesOut: Type.Number(),
  durationMs: Type.Number()
})
const Entry = Type.Intersect([Request, Type.Object({ seq: Type.Integer() })])
const Offset = Type.Optional(Type.Number())
const Traced = Type.Object({
  entries: Type.Array(Type.Intersect([Request, Type.Object({ trace: Type.Object({ parent: Type.Optional(Type.String()), resolvedMs: Offset, openedMs: Offset, sentMs: Offset, answeredMs: Offset }) })]))
})
const Page = Type.Object({ entries: Type.Array(Entry), next: Type.Integer() })

const TIMEOUT_MS = 10_000
/** for requests that the proxy answers at once unless it hangs */
const STATE_TIMEOUT_MS = 4_000
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

export class ControlClient {
  readonly #path: string

  constructor (path: string) {
    this.#path = path
  }

  /** A connection without requests: its close shows that the proxy has ended. Node's HTTP server also closes it by itself, about once a minute. */
  async connect (): Promise<Socket> {
    const socket = await connectUnix(dirname(this.#path), basename(this.#path))
    // The server may send an answer when it closes the connection, and a socket that nobody reads would not show its close.
    socket.resume()
    return socket
  }

  /** Whether the proxy takes connections. */
  async takesConnections (): Promise<boolean> {
    return await takesConnections(dirname(this.#path), basename(this.#path))
  }

  async state (): Promise<{ readonly revision: number | null, readonly vms: number }> {
    return checked(State, await this.#json('GET', '/policy', undefined, STATE_TIMEOUT_MS))
  }

  /** What its own configuration allows and denies. A proxy that is older than this server refuses the question. */
  async ranges (): Promise<OwnRanges> {
    return checked(Ranges, await this.#json('GET', '/ranges', undefined, STATE_TIMEOUT_MS))
  }

  /** Resolves once the revision is enforced. */
  async put (revision: PolicyRevision): Promise<void> {
    checked(Acknowledged, await this.#json('PUT', '/policy', JSON.stringify(revision)))
  }

  /** The same for a difference from the enforced revision. */
  async patch (change: PolicyChange): Promise<void> {
    checked(Acknowledged, await this.#json('PATCH', '/policy', JSON.stringify(change)))
  }

  async audit (vm: string, after: number, limit: number): Promise<{ readonly entries: readonly AuditEntry[], readonly next: number }> {
    return checked(Page, await this.#json('GET', `/audit?${new URLSearchParams({ vm, after: String(after), limit: String(limit) }).toString()}`))
  }

  /** Requests that ended since the last call: each is returned once. */
  async traced (): Promise<readonly TracedEntry[]> {
    return checked(Traced, await this.#json('GET', '/traces')).entries
  }

  async certificate (): Promise<string> {
    return await this.#text('GET', '/ca')
  }

  async metrics (): Promise<string> {
    return await this.#text('GET', '/metrics')
  }

  async #json (method: string, path: string, body?: string, timeoutMs?: number): Promise<unknown> {
    return JSON.parse(await this.#text(method, path, body, timeoutMs))
  }

  async #text (method: string, path: string, body?: string, timeoutMs = TIMEOUT_MS): Promise<string> {
    const socket = await connectUnix(dirname(this.#path), basename(this.#path))
    try {
      const outgoing = request({ createConnection: () => socket, method, path, headers: { connection: 'close' }, signal: AbortSignal.timeout(timeoutMs) })
      // The first failure is reported; nobody would handle a reset after it.
      outgoing.on('error', () => {})
      const answered: Promise<[IncomingMessage]> = once(outgoing, 'response').then(([response]) => [response])
      outgoing.end(body)
      const [response] = await answered
      const text = await read(response)
      if (response.statusCode !== 200) throw refusalOf(response.statusCode ?? 0, text)
      return text
    } finally {
      socket.destroy()
    }
  }
}

async function read (response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response) {
    const piece: unknown = chunk
    if (!Buffer.isBuffer(piece)) throw new Error('the proxy answered with something other than bytes')
    bytes += piece.length
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`the proxy answered with more than ${MAX_ANSWER_BYTES} bytes`)
    chunks.push(piece)
  }
  return Buffer.concat(chunks).toString()
}

function refusalOf (status: number, text: string): ControlRefused {
  try {
    const body: unknown = JSON.parse(text)
    return Value.Check(Refused, body) ? new ControlRefused(status, body.message, { ...ofOlder(body.message), ...body }) : new ControlRefused(status, NO_REASON)
  } catch (error) {
    if (error instanceof SyntaxError) return new ControlRefused(status, NO_REASON)
    throw error
  }
}

/** A proxy of before there were `at` and `revision` has them in its sentence alone: at its beginning, or as its first number. */
function ofOlder (message: string): Pick<ControlRefusal, 'at' | 'revision'> {
  const [, field, index] = /^(\w+)(?:\[(\d+)\])?[.:]/.exec(message) ?? []
  const [revision] = /\d+/.exec(message) ?? []
  return { ...field === undefined ? {} : { at: { field, ...index === undefined ? {} : { index: Number(index) } } }, ...revision === undefined ? {} : { revision: Number(revision) } }
}

function checked<T extends TSchema> (schema: T, value: unknown): Static<T> {
  if (!Value.Check(schema, value)) throw new Error('the proxy answered something that this server does not understand: are both of the same version?')
  return value
}
