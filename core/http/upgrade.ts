// Which requests change the protocol of their connection: those that ask for a WebSocket. Clients that offer another one, as Java's and curl's do with h2c, are served as if they had not:
// a server may ignore what it does not speak (RFC 9110, 7.8). Node asks only whether anybody listens for upgrades at all, so it is told here, where the parser notes what it has read.
import { IncomingMessage } from 'node:http'

/** For the server's option `IncomingMessage`. */
export class ApiRequest extends IncomingMessage {
  /** what the parser says, and then Node; set by the constructor of the class above */
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
