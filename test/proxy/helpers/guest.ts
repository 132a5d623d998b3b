// What a guest does: connects from its address to where its packets are redirected, and speaks HTTP, well or badly.
import { request, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { once } from 'node:events'
import type { TestProxy } from './proxy.ts'

export interface GuestAnswer {
  readonly status: number
  readonly message: string
  readonly headers: IncomingMessage['headers']
  readonly raw: readonly string[]
  readonly trailers: IncomingMessage['trailers']
  readonly body: Buffer
  readonly text: string
}

export interface GuestRequest {
  /** SNI; without it there is no TLS */
  readonly name?: string
  readonly method?: string
  readonly path?: string
  readonly headers?: OutgoingHttpHeaders | readonly string[]
  readonly body?: string | Buffer
}

/** Opens a connection from `from` as the redirect would deliver it. */
export async function openTls (proxy: TestProxy, from: string, name: string, options: { readonly alpn?: readonly string[], readonly ca?: string, readonly ciphers?: string | undefined, readonly port?: number } = {}): Promise<TLSSocket> {
  const tcp = await openPlain(proxy, from, options.port ?? proxy.ports.https)
  const socket = connectTls({ socket: tcp, servername: name, ca: options.ca ?? await proxy.ca(), ALPNProtocols: [...options.alpn ?? ['http/1.1']], ...(options.ciphers === undefined ? {} : { ciphers: options.ciphers }) })
  socket.on('error', () => socket.destroy())
  await Promise.race([once(socket, 'secureConnect'), once(socket, 'close').then(() => { throw new Error('the connection was closed') })])
  return socket
}

export async function openPlain (proxy: TestProxy, from: string, port = proxy.ports.http): Promise<Socket> {
  const socket = connectTcp({ host: proxy.address, port, localAddress: from })
  socket.on('error', () => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** One request on a connection of its own, or on `socket`. */
export async function ask (proxy: TestProxy, from: string, options: GuestRequest, socket?: Socket): Promise<GuestAnswer> {
  const connection = socket ?? (options.name === undefined ? await openPlain(proxy, from) : await openTls(proxy, from, options.name))
  const headers = options.headers ?? {}
  const outgoing = request({ createConnection: () => connection, method: options.method ?? 'GET', path: options.path ?? '/', headers: headers as OutgoingHttpHeaders, setHost: false })
  const response = answered(outgoing)
  outgoing.end(options.body)
  const answer = await response
  if (socket === undefined) connection.destroy()
  return answer
}

/** The whole answer to a request. */
export async function answered (outgoing: ReturnType<typeof request>): Promise<GuestAnswer> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.on('response', resolve)
    outgoing.on('error', reject)
  })
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  return { status: response.statusCode ?? 0, message: response.statusMessage ?? '', headers: response.headers, raw: response.rawHeaders, trailers: response.trailers, body, text: body.toString('latin1') }
}

/** Writes bytes and gives back everything that comes until the other side closes, or until `enough`. */
export async function exchangeBytes (socket: Socket, text: string | readonly string[], enough: (received: string) => boolean = () => false): Promise<string> {
  let received = ''
  const listening = new AbortController()
  const done = new Promise<void>(resolve => {
    const onData = (chunk: Buffer) => {
      received += chunk.toString('latin1')
      if (enough(received)) resolve()
    }
    const onClose = () => resolve()
    socket.on('data', onData)
    socket.on('close', onClose)
    // Many exchanges may follow each other on one connection.
    listening.signal.addEventListener('abort', () => {
      socket.removeListener('data', onData)
      socket.removeListener('close', onClose)
    })
  })
  for (const part of typeof text === 'string' ? [text] : text) socket.write(Buffer.from(part, 'latin1'))
  await done
  listening.abort()
  return received
}

/** Whether the connection is closed within a time; a test that waits for silence cannot do without one. */
export async function closesWithin (socket: Socket, timeMs: number): Promise<boolean> {
  if (socket.closed) return true
  socket.resume()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>(resolve => { timer = setTimeout(() => resolve(false), timeMs) })
  const closed = await Promise.race([once(socket, 'close').then(() => true), late])
  clearTimeout(timer)
  return closed
}
