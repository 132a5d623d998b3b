// One origin: a server for a name on an address of its own, over TLS with HTTP/2 and HTTP/1.1, which notes every request as it came.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createPlain, type IncomingMessage } from 'node:http'
import { createSecureServer, type Http2ServerRequest } from 'node:http2'
import { createServer as createSecure } from 'node:https'
import type { Duplex, Writable } from 'node:stream'
import { machineMs, ORIGINS, type OriginName, type Seen } from './contract.ts'

export type Incoming = IncomingMessage | Http2ServerRequest
/** What the answers of both protocols have in common. */
export interface Outgoing extends Writable {
  statusCode: number
  setHeader (name: string, value: string | readonly string[]): unknown
}

/** A request whose body, if it is asked for, is noted too. */
export interface Call {
  readonly request: Incoming
  readonly response: Outgoing
  readonly path: string
  readonly query: URLSearchParams
  readonly secure: boolean
  /** The whole body. */
  body (): Promise<Buffer>
  /** Reads the body without keeping it. */
  drain (): Promise<{ readonly bytes: number, readonly hash: string }>
  answer (status: number, body: string | Buffer, headers?: Readonly<Record<string, string | readonly string[]>>): void
}

export type Answering = (call: Call) => Promise<void> | void

export interface HostOptions {
  readonly name: OriginName
  readonly address: string
  readonly certificate: { readonly cert: string, readonly key: string }
  readonly answer: Answering
  /** whether port 80 answers too */
  readonly plain?: boolean
  /** a port that speaks TLS beside 443 */
  readonly further?: number
  /** WebSockets: the server then speaks HTTP/1.1 only */
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
  readonly note: (seen: Seen) => void
}

const SAMPLE_BYTES = 256 * 1024

/** Starts an origin; the end of the process ends it. */
export async function startHost (options: HostOptions): Promise<void> {
  const serve = (secure: boolean) => (request: Incoming, response: Outgoing): void => { void handle(options, secure, request, response) }
  if (options.upgrade !== undefined) {
    const server = createSecure({ ...options.certificate }, serve(true))
    server.on('upgrade', (request, socket, head) => {
      options.note(describe(options.name, true, request))
      options.upgrade?.(request, socket, head)
    })
    await once(server.listen(443, options.address), 'listening')
  } else {
    for (const port of [443, ...options.further === undefined ? [] : [options.further]]) {
      const server = createSecureServer({ ...options.certificate, allowHTTP1: true }, serve(true))
      server.on('sessionError', () => {})
      await once(server.listen(port, options.address), 'listening')
    }
  }
  if (options.plain === true) await once(createPlain(serve(false)).listen(80, options.address), 'listening')
}

async function handle (options: HostOptions, secure: boolean, request: Incoming, response: Outgoing): Promise<void> {
  request.on('error', () => {})
  response.on('error', () => {})
  const seen = describe(options.name, secure, request)
  const hash = createHash('sha256')
  const sample: Buffer[] = []
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    hash.update(chunk)
    if (bytes < SAMPLE_BYTES) sample.push(chunk)
    bytes += chunk.length
  })
  request.pause()
  const ended = once(request, 'end').then(() => ({ bytes, hash: hash.digest('hex') }), () => ({ bytes, hash: 'broken off' }))
  // Noted when the headers are there, and again with the body: whoever asks in between sees the former.
  const entry = { ...seen }
  options.note(entry)
  void ended.then((body) => Object.assign(entry, { bodyBytes: body.bytes, bodyHash: body.hash, body: Buffer.concat(sample).toString('latin1') }))
  const url = new URL(request.url ?? '/', `https://${ORIGINS[options.name]}`)
  const call: Call = {
    request, response, secure, path: url.pathname, query: url.searchParams,
    async body () {
      const parts: Buffer[] = []
      request.on('data', (chunk: Buffer) => parts.push(chunk))
      request.resume()
      await ended
      return Buffer.concat(parts)
    },
    async drain () {
      request.resume()
      return await ended
    },
    answer (status, body, headers = {}) {
      request.resume()
      const all = { 'content-length': String(Buffer.byteLength(body)), ...headers }
      for (const [name, value] of Object.entries(all)) response.setHeader(name, value)
      response.statusCode = status
      response.end(request.method === 'HEAD' ? undefined : body)
    }
  }
  try {
    await options.answer(call)
  } catch (error) {
    // Told to whoever reads the test's output, since the client only sees a broken answer.
    process.stderr.write(`${ORIGINS[options.name]} ${request.url ?? ''}: ${error instanceof Error ? error.stack ?? error.message : String(error)}\n`)
    response.destroy()
  }
}

function describe (origin: OriginName, secure: boolean, request: Incoming): Seen {
  return {
    origin, secure, protocol: request.httpVersion, method: request.method ?? '', url: request.url ?? '', headers: [...request.rawHeaders],
    bodyBytes: 0, bodyHash: '', body: '', atMs: machineMs()
  }
}

/** The values of a header, as they came. */
export function valuesOf (headers: readonly string[], name: string): string[] {
  return headers.filter((_, index) => index % 2 === 1 && headers[index - 1]?.toLowerCase() === name)
}
