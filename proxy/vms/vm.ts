// One VM of the proxy: its current policy and everything that is open for it. It lives for one epoch of its address.
import type { Socket } from 'node:net'
import type { ReasonCode } from '../contract/reasons.ts'
import { Bucket } from '../gate/bucket.ts'
import type { CompiledPolicy } from '../gate/host-rules.ts'
import type { GuestWay } from '../gate/admit.ts'
import { OriginPool } from '../upstream/origin-pool.ts'
import { forEachApart } from './each.ts'
import type { Exchange, ExchangeVm } from './exchange.ts'
import type { Services } from './services.ts'

/** The server for the connections of one VM that arrive in one way. */
export interface GuestServer {
  accept (socket: Socket): void
  /** Ends what is idle and lets the rest finish. */
  drain (): void
  close (): void
}

export class Vm implements ExchangeVm {
  readonly id: string
  readonly address: string
  readonly epoch: string
  #policy: CompiledPolicy
  readonly connections = new Set<Socket>()
  readonly exchanges = new Set<Exchange>()
  readonly origins: OriginPool
  readonly newNames: Bucket
  readonly dnsQueries: Bucket
  /** limits the log lines about reached limits, so that a VM that only runs into them does not fill the audit log */
  readonly limitLines = new Bucket(1)
  readonly #faultLines = new Bucket(10)
  /** when the last connection was taken */
  acceptedMs = Number.NEGATIVE_INFINITY
  readonly #servers = new Map<string, GuestServer>()
  readonly #services: Services
  readonly #createServer: (vm: Vm, way: GuestWay) => GuestServer
  #ended = false

  constructor (policy: CompiledPolicy, services: Services, createServer: (vm: Vm, way: GuestWay) => GuestServer) {
    this.id = policy.source.id
    this.address = policy.source.address
    this.epoch = policy.source.epoch
    this.#policy = policy
    this.origins = new OriginPool(services)
    this.newNames = new Bucket(services.limits.newNamesPerSecond)
    this.dnsQueries = new Bucket(services.limits.dnsPerSecond)
    this.#services = services
    this.#createServer = createServer
  }

  /** Replaced as a whole; each request reads it when it writes its header. */
  get policy (): CompiledPolicy {
    return this.#policy
  }

  /** Puts another policy in force: no header with a value of the one before leaves after this has returned. */
  enforce (policy: CompiledPolicy): void {
    this.#policy = policy
    forEachApart(this.exchanges, exchange => exchange.renew(), error => this.fault(error))
  }

  get ended (): boolean {
    return this.#ended
  }

  /** Takes a connection that came from this VM's address, or destroys it when there are too many. */
  accept (socket: Socket, way: GuestWay): void {
    if (this.#ended || this.connections.size >= this.#services.limits.connections) {
      socket.destroy()
      if (!this.#ended) this.#recordLimit(way)
      return
    }
    this.acceptedMs = performance.now()
    this.connections.add(socket)
    socket.once('close', () => this.connections.delete(socket))
    this.#serverOf(way).accept(socket)
  }

  fault (error: unknown): void {
    this.#services.counters.exchangeFaults++
    if (this.#faultLines.take()) this.#services.log.error('a fault of the proxy ended a request', error, { vm: this.id })
  }

  /** Runs the code of one of this VM's connections. An exception ends that connection and nothing else. */
  runFor (connection: { destroy (): unknown }, work: () => void): void {
    try {
      work()
    } catch (error) {
      this.fault(error)
      connection.destroy()
    }
  }

  drain (): void {
    for (const server of this.#servers.values()) server.drain()
  }

  /** Whether something of a VM that has ended is still open. */
  get lingers (): boolean {
    return this.exchanges.size > 0 || [...this.connections].some(socket => !socket.destroyed)
  }

  /**
   * Ends everything that is open for this VM, on both sides, in any state. None of it is used again. Never throws, and may be called again
   * while the VM `lingers`.
   */
  end (code: ReasonCode): void {
    this.#ended = true
    const onFault = (error: unknown): void => this.#services.log.error('a part of a VM did not end as it should', error, { vm: this.id })
    forEachApart(this.exchanges, exchange => exchange.abort(code), onFault)
    // A request that could not be ended in order is finished nevertheless, and has its line in the log.
    forEachApart(this.exchanges, exchange => exchange.finish(code), onFault)
    // Sockets, pools and servers are ended whether or not the requests on them were: without a connection nothing gets in or out.
    forEachApart(this.connections, socket => socket.destroy(), onFault)
    const rest = [() => this.origins.close(), () => forEachApart(this.#servers.values(), server => server.close(), onFault), () => this.#services.contexts.forget(this)]
    forEachApart(rest, close => close(), onFault)
  }

  /** Most VMs of a host never reach out, so a server is made for the first connection of its kind. */
  #serverOf (way: GuestWay): GuestServer {
    const key = `${way.secure} ${way.port}`
    const known = this.#servers.get(key)
    if (known !== undefined) return known
    const made = this.#createServer(this, way)
    this.#servers.set(key, made)
    return made
  }

  #recordLimit ({ port }: GuestWay): void {
    if (!this.limitLines.take()) return this.#services.counters.countRefusal('too_many_connections')
    this.#services.audit.record({ vm: this.id, revision: this.policy.revision, protocol: 'tcp', host: '', port, injected: [], reason: 'too_many_connections', bytesIn: 0, bytesOut: 0, durationMs: 0 })
  }
}
