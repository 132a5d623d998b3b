// Origins of tests: real servers over TLS and plain HTTP that note every request as it arrived, down to the bytes.
import { createServer as createPlain, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createSecureServer, type Http2SecureServer } from 'node:http2'
import { createServer as createSecure } from 'node:https'
import type { Socket } from 'node:net'
import { once } from 'node:events'
import type { TLSSocket, TlsOptions } from 'node:tls'
import type { TestAuthority } from './authority.ts'

export interface Seen {
  readonly method: string
  readonly url: string
  readonly raw: readonly string[]
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  readonly trailers: IncomingMessage['trailers']
}

export interface TestOrigin {
  readonly address: string
  readonly seen: Seen[]
  /** everything that came in, decrypted; throws when that was more than is kept */
  bytes (): string
  /** connections so far */
  connections (): number
  open (): number
  close (): Promise<void>
}

export type Answering = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void

export interface OriginOptions {
  readonly address: string
  readonly port: number
  readonly hosts?: readonly string[]
  readonly authority?: TestAuthority
  readonly answer?: Answering
  /** takes the request before its body is read */
  readonly streaming?: (request: IncomingMessage, response: ServerResponse) => void
  readonly upgrade?: (request: IncomingMessage, socket: Socket, head: Buffer) => void
  /** certificate of its own in place of one of the authority */
  readonly certificate?: { readonly cert: string, readonly key: string, readonly SNICallback?: NonNullable<TlsOptions['SNICallback']> }
  readonly http2?: (server: Http2SecureServer) => void
}

/** What a test looks through byte by byte is far less; what only passes may be gigabytes. */
const KEPT_BYTES = 64 * 2 ** 20

/** Starts an origin; over TLS when it has an authority. */
export async function startOrigin (options: OriginOptions): Promise<TestOrigin> {
  const seen: Seen[] = []
  const received: Buffer[] = []
  let receivedBytes = 0
  const sockets = new Set<Socket>()
  let connections = 0
  const certificate = options.certificate ?? options.authority?.issue(options.hosts?.[0] ?? '')
  const server: Server | Http2SecureServer = certificate === undefined ? createPlain() : options.http2 === undefined ? createSecure(certificate) : createSecureServer({ ...certificate, allowHTTP1: true })
  const note = (socket: Socket | TLSSocket) => {
    connections++
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
    // Added after Node's own: a listener for data makes its parser take the bytes from here rather than from the handle.
    socket.on('data', (chunk: Buffer) => {
      receivedBytes += chunk.length
      if (receivedBytes <= KEPT_BYTES) received.push(chunk)
    })
  }
  if (options.http2 === undefined) {
    server.on('request', (request: IncomingMessage, response: ServerResponse) => handle(request, response, options, seen))
    server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
      response.writeContinue()
      handle(request, response, options, seen)
    })
  } else {
    options.http2(server as Http2SecureServer)
  }
  if (options.upgrade !== undefined) server.on('upgrade', options.upgrade)
  server.on(certificate === undefined ? 'connection' : 'secureConnection', options.http2 === undefined ? note : () => { connections++ })
  server.listen(options.port, options.address)
  await once(server, 'listening')
  return {
    address: options.address,
    seen,
    bytes: () => {
      if (receivedBytes > KEPT_BYTES) throw new Error(`${receivedBytes} bytes came in, more than is kept`)
      return Buffer.concat(received).toString('latin1')
    },
    connections: () => connections,
    open: () => sockets.size,
    async close () {
      for (const socket of sockets) socket.destroy()
      server.close()
    }
  }
}

function handle (request: IncomingMessage, response: ServerResponse, options: OriginOptions, seen: Seen[]): void {
  request.on('error', () => {})
  if (options.streaming !== undefined) {
    seen.push({ method: request.method ?? '', url: request.url ?? '', raw: request.rawHeaders, headers: request.headers, body: Buffer.alloc(0), trailers: {} })
    options.streaming(request, response)
    return
  }
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  // A request that is cut off has no end, and is not seen.
  request.on('end', () => {
    const body = Buffer.concat(chunks)
    seen.push({ method: request.method ?? '', url: request.url ?? '', raw: request.rawHeaders, headers: request.headers, body, trailers: request.trailers })
    if (options.answer !== undefined) options.answer(request, response, body)
    else response.end('hello from the origin')
  })
}
