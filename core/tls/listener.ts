// The API over TLS: connections are decrypted here and passed to the one HTTP server, which handles them like its own.
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import type { Registry } from 'prom-client'
import type { Logger } from '../contracts/services.ts'
import { figuresOf, followPair, type FollowOptions } from './follow.ts'
import type { Pair, PairFiles } from './pair.ts'

const HANDSHAKE_TIMEOUT_MS = 10_000

export interface SecureListener {
  address (): AddressInfo
  /** Accepts no more connections, and returns when the accepted ones have ended. */
  close (): Promise<void>
}

export interface SecureListenerOptions {
  readonly host: string
  readonly port: number
  readonly files: PairFiles
  readonly log: Logger
  readonly metrics: Registry
  readonly intervalMs?: FollowOptions['intervalMs']
}

/** @throws UnusablePair, or the error of listening */
export async function listenSecurely (http: Server, { host, port, metrics, ...options }: SecureListenerOptions): Promise<SecureListener> {
  const server = createServer({ minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'], handshakeTimeout: HANDSHAKE_TIMEOUT_MS })
  // Existing connections keep the certificate with which they began.
  const use = ({ cert, key }: Pair): void => { server.setSecureContext({ cert, key, minVersion: 'TLSv1.2' }) }
  const pair = await followPair({ ...options, use, figures: figuresOf(metrics) })
  use(pair.first)
  // by the port of the other end, which is all that the plain socket and the TLS socket have in common
  const handshaking = new Map<string, Socket>()
  server.on('connection', (socket: Socket) => {
    const end = endOf(socket)
    handshaking.set(end, socket)
    socket.once('close', () => { if (handshaking.get(end) === socket) handshaking.delete(end) })
  })
  server.on('secureConnection', (socket: TLSSocket) => {
    handshaking.delete(endOf(socket))
    http.emit('connection', socket)
  })
  server.on('tlsClientError', (error, socket) => {
    options.log.debug({ reason: error.message }, 'a TLS connection was not made')
    socket.destroy()
  })
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (error) {
    pair.close()
    throw error
  }
  return {
    address () {
      const address = server.address()
      if (address === null || typeof address === 'string') throw new Error('the TLS listener has no port')
      return address
    },
    async close () {
      pair.close()
      const closed = once(server, 'close')
      server.close()
      for (const socket of handshaking.values()) socket.destroy()
      await closed
    }
  }
}

function endOf ({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
