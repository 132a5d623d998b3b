// One origin as one VM uses it: its vetted addresses, its pool of HTTP/1.1 connections and its HTTP/2 session. Nothing here is shared between VMs.
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { Refusal } from '../contract/reasons.ts'
import { openings } from '../audit/exchange-trace.ts'
import { dial, vettedAddresses, type Target } from './dial.ts'
import { fail, type OriginCall } from './http1/call.ts'
import { OriginConnection, type ConnectionOwner } from './http1/connection.ts'
import { OriginConnections } from './http1/connections.ts'
import { Http2Sessions } from './http2-sessions.ts'
import type { OriginServices } from './services.ts'

/** A connection outside of the pool ends with its request. */
const ALONE: ConnectionOwner = { free: connection => connection.destroy(), gone () {} }

export class Origin {
  readonly target: Target
  readonly http1: OriginConnections
  readonly http2: Http2Sessions
  usedMs = performance.now()
  /** requests that are under way */
  active = 0
  readonly #services: OriginServices
  #addresses: { readonly addresses: readonly string[], readonly untilMs: number } | undefined
  #resolving: Promise<readonly string[]> | undefined
  #session: Buffer | undefined
  #spare: Socket | TLSSocket | undefined
  /** all connections that are open, also those of requests outside of the pool */
  readonly #sockets = new Set<Socket | TLSSocket>()
  closed = false

  constructor (target: Target, services: OriginServices) {
    this.target = target
    this.#services = services
    this.http1 = new OriginConnections({ most: services.limits.connectionsPerHost, connect: owner => this.#connectHttp1(owner) })
    this.http2 = new Http2Sessions(() => this.#connect(['h2', 'http/1.1']), socket => { this.#spare = socket })
  }

  /** Counts a request as running, until `done`. */
  begin (): void {
    this.active++
  }

  done (): void {
    this.active--
    this.usedMs = performance.now()
  }

  /** Sends a request over a connection of its own, outside of the pool: a connection that changes protocols cannot be used again. */
  requestAlone (call: OriginCall): void {
    this.#connectHttp1(ALONE).then(connection => { if (!connection.carry(call)) connection.destroy() }, (error: unknown) => fail(call, error))
  }

  /** Other addresses may be dialled from now on. Connections to those that may not be any more end, whatever they carry. */
  vetAnew (): void {
    this.#addresses = undefined
    for (const socket of this.#sockets) if (this.#services.vet(socket.remoteAddress ?? '') !== undefined) socket.destroy()
  }

  close (): void {
    this.closed = true
    this.http1.close()
    this.http2.close()
    this.#spare?.destroy()
  }

  async #connectHttp1 (owner: ConnectionOwner): Promise<OriginConnection> {
    const connection = new OriginConnection(owner, this.#services.limits.headerBytes)
    const spare = this.#spare
    this.#spare = undefined
    const hasSpare = spare?.writable === true
    const socket = hasSpare ? spare : await this.#connect(['http/1.1'], view => connection.read(view))
    if (hasSpare) socket.on('data', (chunk: Buffer) => connection.read(chunk))
    connection.open(socket)
    const opening = openings.get(socket)
    if (opening !== undefined) openings.set(connection, opening)
    if (!connection.usable) throw new Refusal('connect_failed')
    return connection
  }

  async #connect (alpn: readonly string[], onRead?: (view: Buffer) => void): Promise<Socket | TLSSocket> {
    const addresses = await this.#resolve()
    const resolvedMs = performance.now()
    const onSession = (session: Buffer): void => { this.#session = session }
    const socket = await dial(this.target, { addresses, alpn, session: this.#session, onSession, ...onRead === undefined ? {} : { onRead } }, this.#services)
    openings.set(socket, { resolvedMs, openMs: performance.now() })
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    if (!this.closed) return socket
    socket.destroy()
    throw new Refusal('policy_changed')
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
