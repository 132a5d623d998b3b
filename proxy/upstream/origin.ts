// One origin as one VM uses it: its vetted addresses, its pool of HTTP/1.1 connections and its HTTP/2 session. Nothing here is shared between VMs.
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Services } from '../vms/services.ts'
import { dial, vettedAddresses, type Target } from './dial.ts'
import { Http2Sessions } from './http2-sessions.ts'
import { OriginAgent } from './origin-agent.ts'

export class Origin {
  readonly target: Target
  readonly agent: OriginAgent
  readonly http2: Http2Sessions
  usedMs = performance.now()
  /** requests that are under way */
  active = 0
  readonly #services: Services
  #addresses: { readonly addresses: readonly string[], readonly untilMs: number } | undefined
  #resolving: Promise<readonly string[]> | undefined
  #session: Buffer | undefined
  #spare: Socket | TLSSocket | undefined
  closed = false

  constructor (target: Target, services: Services) {
    this.target = target
    this.#services = services
    this.agent = new OriginAgent({ secure: target.secure, maxSockets: services.limits.connectionsPerHost, connect: () => this.#connectHttp1() })
    this.http2 = new Http2Sessions(() => this.#connect(['h2', 'http/1.1']), socket => { this.#spare = socket })
  }

  /** A connection of its own for HTTP/1.1, outside of the pool. */
  async connect (): Promise<Socket | TLSSocket> {
    return await this.#connect(['http/1.1'])
  }

  close (): void {
    this.closed = true
    this.agent.destroy()
    this.http2.close()
    this.#spare?.destroy()
  }

  async #connectHttp1 (): Promise<Socket | TLSSocket> {
    const spare = this.#spare
    this.#spare = undefined
    return spare?.writable === true ? spare : await this.#connect(['http/1.1'])
  }

  async #connect (alpn: readonly string[]): Promise<Socket | TLSSocket> {
    const addresses = await this.#resolve()
    const socket = await dial(this.target, { addresses, alpn, session: this.#session, onSession: session => { this.#session = session } }, this.#services)
    if (this.closed) socket.destroy()
    return socket
  }

  async #resolve (): Promise<readonly string[]> {
    if (this.#addresses !== undefined && this.#addresses.untilMs > performance.now()) return this.#addresses.addresses
    this.#resolving ??= this.#ask()
    return await this.#resolving
  }

  async #ask (): Promise<readonly string[]> {
    try {
      const { addresses, ttlMs } = await vettedAddresses(this.target.host, this.#services)
      this.#addresses = { addresses, untilMs: performance.now() + ttlMs }
      return addresses
    } finally {
      this.#resolving = undefined
    }
  }
}
