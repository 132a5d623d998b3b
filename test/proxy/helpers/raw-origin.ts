// An origin that writes the bytes that a test gives it, over TLS or plain.
import { once } from 'node:events'
import { createServer as createPlain, type Socket } from 'node:net'
import { createServer as createTls } from 'node:tls'
import type { TestAuthority } from './authority.ts'

export interface RawOriginOptions {
  readonly address: string
  readonly port: number
  readonly host: string
  /** without one it is a plain origin */
  readonly authority?: TestAuthority
  readonly alpn?: readonly string[]
  /** whether it keeps its own side open when the other one has ended */
  readonly halfOpen?: boolean
  /** Is told of each piece that arrives, and of the connection's number. */
  readonly heard: (socket: Socket, piece: Buffer, connection: number) => void
}

export interface RawOrigin {
  connections: number
  open (): number
  close (): void
}

/** Starts it. */
export async function startRawOrigin ({ address, port, host, authority, alpn, halfOpen = false, heard }: RawOriginOptions): Promise<RawOrigin> {
  const open = new Set<Socket>()
  const below = new Map<number, Socket>()
  const take = (socket: Socket): void => {
    const connection = origin.connections++
    open.add(socket)
    socket.on('error', () => socket.destroy())
    const port = socket.remotePort ?? 0
    socket.on('close', () => {
      open.delete(socket)
      below.delete(port)
    })
    // Node resets no connection with TLS by itself.
    const tcp = below.get(port)
    if (tcp !== undefined) socket.resetAndDestroy = () => { tcp.resetAndDestroy(); return socket }
    socket.on('data', (piece: Buffer) => heard(socket, piece, connection))
  }
  const server = authority === undefined ? createPlain({ allowHalfOpen: halfOpen }, take) : createTls({ ...authority.issue(host), allowHalfOpen: halfOpen, ...alpn === undefined ? {} : { ALPNProtocols: [...alpn] } }, take)
  const origin: RawOrigin = {
    connections: 0,
    open: () => open.size,
    close () {
      server.close()
      for (const socket of open) socket.destroy()
    }
  }
  if (authority !== undefined) {
    server.on('connection', (socket: Socket) => below.set(socket.remotePort ?? 0, socket))
    server.on('tlsClientError', (_error, socket: Socket) => socket.destroy())
  }
  server.listen(port, address)
  await once(server, 'listening')
  return origin
}
