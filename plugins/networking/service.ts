// The service `network`: addresses in the database, ports in the kernel; changes of one instance run one after the other.
import { createLocks } from '../../core/jobs/locks.ts'
import { HostCommandFailed } from '../../core/process/run.ts'
import { addressAt, capacityOf, lastPosition } from './cidr.ts'
import type { EgressMode, HostSide, InboundConnection, InboundPort, MediatedPorts, NetworkAddress, NetworkCounters, NetworkFacts, NetworkLimits, NetworkPort, NetworkService, ProxyListener, ProxyPlace } from './contract.ts'
import { AddressesExhausted, NetworkUnusable } from './errors.ts'
import { inboundIn } from './inbound.ts'
import { tapOf } from './names.ts'
import { Network, type NetworkOptions, type Port } from './network.ts'
import { DEFAULT_PORTS, listenersFor, redirectsOf } from './redirects.ts'
import type { AddressRecord, AddressRepository, PortSpec } from './repository.ts'
import { effectiveLimits } from './settings.ts'

const TEND_INTERVAL_MS = 5000

export interface NetworkingOptions extends NetworkOptions {
  readonly repository: AddressRepository
}

export class Networking implements NetworkService {
  readonly #options: NetworkingOptions
  readonly #network: Network
  readonly #locks = createLocks()
  /** all addresses of this host; only this service assigns them */
  readonly #records = new Map<string, AddressRecord>()
  /** instances of which this process knows that no earlier connection is left */
  readonly #clean = new Set<string>()
  #listeners: readonly ProxyListener[]
  #tending: NodeJS.Timeout | undefined
  #tended: Promise<void> = Promise.resolve()

  constructor (options: NetworkingOptions) {
    this.#options = options
    this.#network = new Network(options)
    this.#listeners = listenersFor(DEFAULT_PORTS, options.settings.proxy)
  }

  get facts (): NetworkFacts {
    const { cidr, gateway, uplink } = this.#options.settings
    // The ports of the bridge are isolated from one another: see port-lines.ts.
    return { subnet: cidr.text, gateway, guestToGuest: false, isClosed: uplink.interface === 'none' }
  }

  get uplink (): string {
    return this.#options.settings.uplink.interface
  }

  /** Reads the addresses, and adopts what an earlier server left in the kernel. Makes nothing: the first `plug` does. */
  async open (): Promise<void> {
    const { repository, settings, log } = this.#options
    await repository.open()
    for (const record of await repository.all()) this.#records.set(record.instanceId, record)
    this.#checkNetwork()
    try {
      if (await this.#network.exists()) await this.#settle()
    } catch (error) {
      // For example another server's namespace: everything that needs no network works, and each plug reports the reason.
      if (!NetworkUnusable.is(error)) throw error
      log.warn({ namespace: settings.namespace }, error.message)
    }
    this.#tending = setInterval(() => { this.#tended = this.#tend() }, TEND_INTERVAL_MS).unref()
  }

  /** @param removing whether no VM outlives this server */
  async close (removing: boolean): Promise<void> {
    await this.abandon()
    if (removing) for (const instanceId of [...this.#network.ports.keys()]) await this.unplug(instanceId)
    await this.#network.removeUnused()
  }

  /** Ends the care for the network and leaves it as it is, as a crash does. */
  async abandon (): Promise<void> {
    clearInterval(this.#tending)
    await this.#tended
  }

  async mediate (ports: MediatedPorts): Promise<void> {
    const listeners = listenersFor(ports, this.#options.settings.proxy)
    await this.#network.redirect(redirectsOf(listeners))
    this.#listeners = listeners
  }

  async proxyPlace (): Promise<ProxyPlace> {
    const { namespacePath, gateway, proxy: { dnsPort }, denied, cidr } = this.#options.settings
    await this.#ensureSettled()
    const nameServers = await this.#network.nameServers()
    const own = this.#options.hostAddresses().filter((address) => !address.startsWith('127.'))
    return { namespace: namespacePath, gateway, listeners: this.#listeners, dnsPort, nameServers, denied: [...new Set([...denied, cidr.text, ...own])] }
  }

  async setInbound (instanceId: string, ports: readonly InboundPort[]): Promise<void> {
    await this.#locks.hold(instanceId, async () => {
      const ip = this.#records.get(instanceId)?.ip
      if (ip !== undefined) await this.#network.open(instanceId, ip, ports)
    })
  }

  get hostLink (): string | undefined {
    const { uplink } = this.#options.settings
    return uplink.interface === 'none' ? undefined : uplink.hostLink
  }

  get hostSide (): HostSide | undefined {
    return this.#network.hostSide
  }

  async allocate (instanceId: string): Promise<NetworkAddress> {
    return await this.#locks.hold(instanceId, async () => {
      const known = this.#records.get(instanceId)
      if (known !== undefined) return this.#describe(known)
      const { repository, settings } = this.#options
      const record = await repository.allocate(instanceId)
      if (record === undefined) throw AddressesExhausted(settings.cidr.text, capacityOf(settings.cidr))
      this.#records.set(instanceId, record)
      this.#clean.add(instanceId)
      return this.#describe(record)
    })
  }

  limitsOf (limits: NetworkLimits): Pick<NetworkLimits, 'downloadBps' | 'uploadBps'> {
    return effectiveLimits(limits, this.#options.settings)
  }

  addressOf (instanceId: string): NetworkAddress | undefined {
    const record = this.#records.get(instanceId)
    return record === undefined ? undefined : this.#describe(record)
  }

  async release (instanceId: string): Promise<void> {
    await this.#locks.hold(instanceId, async () => {
      await this.#unplug(instanceId)
      const ip = this.#records.get(instanceId)?.ip
      if (ip !== undefined) await this.#network.open(instanceId, ip, [])
      await this.#options.repository.remove(instanceId)
      this.#records.delete(instanceId)
      this.#clean.delete(instanceId)
    })
  }

  async retainOnly (instanceIds: Iterable<string>): Promise<void> {
    const retained = new Set(instanceIds)
    for (const instanceId of [...this.#records.keys()]) if (!retained.has(instanceId)) await this.release(instanceId)
  }

  async plug (instanceId: string, uid: number | undefined, limits: NetworkLimits, egress: EgressMode): Promise<NetworkPort> {
    return await this.#locks.hold(instanceId, async () => {
      const { settings, log } = this.#options
      if (!this.#network.isSettled) await this.#ensureSettled()
      await this.#unplug(instanceId)
      const spec: PortSpec = { egress, limits: effectiveLimits(limits, settings), ...uid === undefined || uid === process.getuid?.() ? {} : { uid } }
      const port = await this.#save(instanceId, { spec, changing: false })
      try {
        await this.#network.plug(port)
      } catch (error) {
        if (!(error instanceof HostCommandFailed)) throw error
        log.warn({ err: error, instanceId }, 'a TAP could not be made; the network is checked and it is tried once more')
        await this.#locks.hold('', async () => { await this.#settle() })
        await this.#network.plug(port)
      }
      return { namespace: settings.namespacePath, tap: tapOf(instanceId) }
    })
  }

  async setEgress (instanceId: string, egress: EgressMode): Promise<void> {
    await this.#locks.hold(instanceId, async () => {
      const before = this.#network.ports.get(instanceId)
      // A change that failed may have set nothing, or have left the connections of before.
      if (before === undefined || (before.spec.egress === egress && this.#records.get(instanceId)?.changing !== true)) return
      const spec = { ...before.spec, egress }
      // Marked until the connections have ended: after a kill in between, the next server ends them.
      await this.#network.change(await this.#save(instanceId, { spec, changing: true }))
      await this.#save(instanceId, { spec, changing: false })
    })
  }

  async unplug (instanceId: string): Promise<void> {
    await this.#locks.hold(instanceId, async () => { await this.#unplug(instanceId) })
  }

  async suspend (instanceId: string): Promise<void> {
    await this.#locks.hold(instanceId, async () => {
      const port = this.#network.ports.get(instanceId)
      if (port === undefined) return
      await this.#network.suspend(port)
      this.#clean.add(instanceId)
    })
  }

  async resume (instanceId: string): Promise<boolean> {
    return await this.#locks.hold(instanceId, async () => {
      const port = this.#network.ports.get(instanceId)
      return port !== undefined && await this.#network.resume(port)
    })
  }

  async counters (instanceId: string): Promise<NetworkCounters | undefined> {
    return await this.#network.counters(instanceId)
  }

  async inbound (): Promise<readonly InboundConnection[]> {
    const guests = new Map([...this.#records.values()].map(({ instanceId, ip }) => [ip, instanceId]))
    return inboundIn(await this.#network.tracked(), (ip) => guests.get(ip))
  }

  /** Checks what changes by itself. Never rejects. */
  async #tend (): Promise<void> {
    try {
      await this.#network.tend()
    } catch (error) {
      this.#options.log.error({ err: error }, 'looking after the network failed')
    }
  }

  /** Makes and repairs the network where needed. Somebody may have removed the namespace. */
  async #ensureSettled (): Promise<void> {
    await this.#locks.hold('', async () => { if (!this.#network.isSettled || !await this.#network.exists()) await this.#settle() })
  }

  async #settle (): Promise<void> {
    this.#clean.clear()
    const settle = async (): Promise<void> => { await this.#network.settle(() => this.#records.values()) }
    // Commands of a server that was killed may still be running: what they have changed meanwhile is checked once more.
    await settle().catch(async (error: unknown) => {
      if (!(error instanceof HostCommandFailed)) throw error
      this.#options.log.warn({ err: error }, 'the network could not be brought in order; it is tried once more')
      await settle()
    })
    for (const { instanceId, ip, spec, changing } of [...this.#records.values()]) {
      if (!changing || spec === undefined) continue
      await this.#network.endConnections(ip)
      await this.#save(instanceId, { spec, changing: false })
    }
  }

  async #unplug (instanceId: string): Promise<void> {
    const port = this.#network.ports.get(instanceId)
    if (port !== undefined) {
      await this.#network.unplug(port)
      this.#clean.add(instanceId)
      return
    }
    // A server may have been killed after the TAP was removed and before its connections were ended.
    const ip = this.#records.get(instanceId)?.ip
    if (ip === undefined || this.#clean.has(instanceId) || !this.#network.isSettled) return
    await this.#network.endConnections(ip)
    this.#clean.add(instanceId)
  }

  async #save (instanceId: string, { spec, changing }: Pick<Port, 'spec' | 'changing'>): Promise<Port> {
    const record = this.#records.get(instanceId)
    if (record === undefined) throw new Error(`instance ${instanceId} has no address, so it cannot be plugged`)
    const port = { ...record, spec, changing }
    if (record.changing !== changing || !isSame(record.spec, spec)) await this.#options.repository.saveSpec(instanceId, { spec, changing })
    this.#records.set(instanceId, port)
    return port
  }

  #describe ({ ip, mac }: AddressRecord): NetworkAddress {
    const { cidr, gateway } = this.#options.settings
    return { ip, mac, prefix: cidr.prefix, gateway, dns: [gateway] }
  }

  #checkNetwork (): void {
    const { cidr } = this.#options.settings
    const strangers = [...this.#records.values()].filter(({ ip, position }) => ip !== addressAt(cidr, position) || position > lastPosition(cidr))
    if (strangers.length > 0) {
      throw new Error(`plugins.networking.config.cidr: ${strangers.length} instances have addresses outside of ${cidr.text}, ${strangers[0]?.ip ?? ''} for one; delete them before you change it`)
    }
  }
}

function isSame (a: PortSpec | undefined, b: PortSpec): boolean {
  return a !== undefined && a.egress === b.egress && a.uid === b.uid && a.limits.downloadBps === b.limits.downloadBps && a.limits.uploadBps === b.limits.uploadBps
}
