// What the server remembers of a connection from one request to the next.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { hashOfHeader } from '../auth/presented.ts'

const CONNECTION: unique symbol = Symbol('connection')

declare module 'net' {
  interface Socket { [CONNECTION]?: Connection }
}

class Connection {
  /** bytes that were read before HTTP: those of a TLS handshake */
  readonly #handshakeBytes: number
  readonly #socket: Socket
  #header = ''
  #hash: string | undefined
  /** The request whose head came last. */
  latest: IncomingMessage | undefined

  constructor (socket: Socket) {
    this.#socket = socket
    this.#handshakeBytes = socket.bytesRead
  }

  /** Whether nothing of a request has come yet. */
  get isSilent (): boolean {
    return this.latest === undefined && this.#socket.bytesRead === this.#handshakeBytes
  }

  /**
   * The hash of the key in an `Authorization` header; undefined when the header has another form. The last one is kept, since nearly every request of a connection presents
   * the same key, and reading and hashing it are a twentieth of a read. It is compared with headers of this connection only: how long that takes tells nobody about the keys of others.
   */
  hashOf (header: string): string | undefined {
    if (header !== this.#header) {
      this.#hash = hashOfHeader(header)
      this.#header = header
    }
    return this.#hash
  }
}

/** To be called when the server has accepted a connection. */
export function noteConnection (socket: Socket): void {
  socket[CONNECTION] = new Connection(socket)
}

/** Undefined for a request that the server sends to itself. */
export function connectionOf (socket: Socket): Connection | undefined {
  return socket[CONNECTION]
}
