// One origin as one VM uses it: its vetted addresses, its pool of HTTP/1.1 connections and its HTTP/2 session. Nothing here is shared between VMs.
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { Refusal } from '../contract/reasons.ts'
import { openings, passOpening } from '../audit/exchange-trace.ts'
import { dial, vettedAddresses, type Target } from './dial.ts'
import { OriginConnection, type ConnectionOwner } from './http1/connection.ts'
import { OriginConnections } from './http1/connections.ts'
import { Http2Sessions } from './http2-sessions.ts'
import type { Passing } from './passing.ts'
import { OriginSockets } from './sockets.ts'
import type { OriginServices } from './services.ts'

export class Origin {
  readonly target: Target
  readonly http1: OriginConnections
  /** connections of their own for requests that change protocols, since these connections cannot be used again */
  readonly tunnels: OriginConnections
  readonly http2: Http2Sessions
  usedMs = performance.now()
  /** requests that are under way */
  active = 0
  readonly #services: OriginServices
  readonly #passing: Passing
  readonly #sockets: OriginSockets
  #addresses: { readonly addresses: readonly string[], readonly untilMs: number } | undefined
  #resolving: Promise<readonly string[]> | undefined
  #session: Buffer | undefined
  closed = false

  /** @param passing of the VM */
  constructor (target: Target, services: OriginServices, passing: Passing) {
    const { limits } = services
    this.target = target
    this.#services = services
    this.#passing = passing
    this.#sockets = new OriginSockets(passing, limits.connectMs)
    const connect = (owner: ConnectionOwner, signal: AbortSignal): Promise<OriginConnection> => this.#connectHttp1(owner, signal)
    this.http1 = new OriginConnections({ most: limits.connectionsPerHost, connect })
    this.tunnels = new OriginConnections({ most: limits.requests, connect })
    this.http2 = new Http2Sessions({ connect: signal => this.#connect(['h2', 'http/1.1'], signal), giveBack: socket => this.#adopt(socket), letGo: socket => this.#sockets.letGo(socket) })
  }

  /** Counts a request as running, until `done`. */
  begin (): void {
    this.active++
  }

  done (): void {
    this.active--
    this.usedMs = performance.now()
  }

  /** Other addresses may be dialled from now on. Connections to those that may not be any more end, whatever they carry. */
  vetAnew (): void {
    this.#addresses = undefined
    this.#sockets.vetAnew(this.#services.vet)
  }

  close (): void {
    this.closed = true
    this.http1.close()
    this.tunnels.close()
    this.http2.close()
    this.#sockets.close()
  }

  async #connectHttp1 (owner: ConnectionOwner, signal: AbortSignal): Promise<OriginConnection> {
    const connection = this.#connectionFor(owner)
    const socket = await this.#connect(['http/1.1'], signal, view => connection.read(view))
    this.#begin(connection, socket)
    if (!connection.usable) throw new Refusal('connect_failed')
    return connection
  }

  /** A connection that was offered HTTP/2 and chose HTTP/1.1 waits for a request like any other. */
  #adopt (socket: Socket | TLSSocket): void {
    const connection = this.#connectionFor(this.http1)
    socket.on('data', (chunk: Buffer) => connection.read(chunk))
    this.#begin(connection, socket)
    this.http1.adopt(connection)
  }

  #connectionFor (owner: ConnectionOwner): OriginConnection {
    return new OriginConnection(owner, this.#services.limits.headerBytes)
  }

  #begin (connection: OriginConnection, socket: Socket | TLSSocket): void {
    connection.open(socket, this.#sockets)
    passOpening(socket, connection)
  }

  async #connect (alpn: readonly string[], signal: AbortSignal, onRead?: (view: Buffer) => void): Promise<Socket | TLSSocket> {
    const addresses = await this.#resolve()
    const resolvedMs = performance.now()
    const onSession = (session: Buffer): void => { this.#session = session }
    const onSocket = (socket: Socket): void => this.#sockets.add(socket)
    const passed = this.#passing.begin()
    try {
      const socket = await dial(this.target, { addresses, alpn, session: this.#session, onSession, onSocket, signal, ...onRead === undefined ? {} : { onRead } }, this.#services)
      openings.set(socket, { resolvedMs, openMs: performance.now() })
      if (!this.closed && !signal.aborted) return socket
      socket.destroy()
      throw new Refusal('policy_changed')
    } finally {
      passed()
    }
  }

  async #resolve (): Promise<readonly string[]> {
    if (this.#addresses !== undefined && this.#addresses.untilMs > performance.now()) return this.#addresses.addresses
    this.#resolving ??= this.#ask(this.#passing.begin())
    return await this.#resolving
  }

  async #ask (passed: () => void): Promise<readonly string[]> {
    try {
      const { addresses, ttlMs } = await vettedAddresses(this.target.host, this.#services)
      this.#addresses = { addresses, untilMs: performance.now() + ttlMs }
      return addresses
    } finally {
      passed()
      this.#resolving = undefined
    }
  }
}
