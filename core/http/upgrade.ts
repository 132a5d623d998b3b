// Only requests for a WebSocket change the protocol of their connection. Clients that offer another one, as Java's and curl's do with h2c, are served as if they had not:
// a server may ignore a protocol that it does not speak (RFC 9110, 7.8). Node only checks whether anybody listens for upgrades at all, so this class decides when the parser notes an upgrade.
import { IncomingMessage } from 'node:http'

/** For the server's option `IncomingMessage`. */
export class ApiRequest extends IncomingMessage {
  /** set by the parser, and then by Node; the constructor of `IncomingMessage` sets it first */
  declare private isAsked: boolean | null

  get upgrade (): boolean {
    return this.isAsked === true && (this.method === 'CONNECT' || asksForWebsocket(this))
  }

  set upgrade (value: boolean | null) {
    this.isAsked = value
  }
}

export function asksForWebsocket ({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket'
}
