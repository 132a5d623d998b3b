// Only requests for a WebSocket change the protocol of their connection. Clients that offer another one, as Java's and curl's do with h2c, are served as if they had not:
// a server may ignore a protocol that it does not speak (RFC 9110, 7.8). Node only checks whether anybody listens for upgrades at all, so this class decides when the parser notes an upgrade.
import { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { connectionOf } from './connection.ts'

/** For the server's option `IncomingMessage`. */
export class ApiRequest extends IncomingMessage {
  /** set by the parser, and then by Node; the constructor of `IncomingMessage` sets it first */
  declare private isAsked: boolean | null

  /** Node makes it when the head of a request has been read. */
  constructor (socket: Socket) {
    super(socket)
    const connection = connectionOf(socket)
    if (connection !== undefined) connection.latest = this
  }

  get upgrade (): boolean {
    return this.isAsked === true && (this.method === 'CONNECT' || namesWebsocket(this))
  }

  set upgrade (value: boolean | null) {
    this.isAsked = value
  }
}

/** An `Upgrade` without a `Connection` that names it belongs to another hop (RFC 9110, 7.8), and is none. */
export function asksForWebsocket (request: IncomingMessage): boolean {
  return request instanceof ApiRequest ? request.upgrade : namesWebsocket(request)
}

function namesWebsocket ({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket'
}
