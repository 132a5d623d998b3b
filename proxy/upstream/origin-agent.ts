// Node's pool of HTTP/1.1 connections, for exactly one origin of one VM, whose connections come from `dial`.
import { Agent } from 'node:http'
import type { Duplex } from 'node:stream'

export interface OriginAgentOptions {
  readonly secure: boolean
  readonly maxSockets: number
  readonly connect: () => Promise<Duplex>
}

export class OriginAgent extends Agent {
  readonly protocol: string
  readonly #connect: () => Promise<Duplex>

  constructor (options: OriginAgentOptions) {
    // The last connection that was used is the least likely to have been closed by the origin.
    super({ keepAlive: true, maxSockets: options.maxSockets, maxFreeSockets: options.maxSockets, scheduling: 'lifo' })
    this.protocol = options.secure ? 'https:' : 'http:'
    this.#connect = options.connect
  }

  /** There is one origin, so there is one name; Node's own puts a long one together for each request. */
  override getName (): string {
    return ''
  }

  override createConnection (_options: unknown, callback?: (error: Error | null, socket: Duplex) => void): undefined {
    this.#connect().then(socket => callback?.(null, socket), error => Reflect.apply(callback ?? (() => undefined), undefined, [error]))
  }
}
