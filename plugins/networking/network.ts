// The network in the kernel: namespace, rules, TAPs, shapers, uplink and DNS forwarder. It knows no database.
import type { HostCommands, Logger } from '../../core/contracts/services.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import type { ProcessRegister } from '../../core/process/register.ts'
import { HostCommandFailed } from '../../core/process/run.ts'
import { Bridges, type BridgeRoom } from './bridges.ts'
import { removeStrays, repairPorts } from './census.ts'
import { endConnections, endConnectionsTo } from './connections.ts'
import type { HostSide, InboundPort, NetworkCounters } from './contract.ts'
import { countersOf, readDeviceTable } from './counters.ts'
import { Forwarder, PROXY_DNS } from './forwarder.ts'
import { LIST_TCP } from './inbound.ts'
import { readLinks } from './links.ts'
import { tapOf } from './names.ts'
import { ensureBridge, ensureNamespace, isNamespace, openBridge, openTunDevice, processesIn, readOwnLinks, removeNamespace } from './namespace.ts'
import { createLines, removeLines, stateLines } from './port-lines.ts'
import { DEFAULT_PORTS, LIST_REDIRECTS, listenersFor, redirectsIn, redirectsOf, type Redirects } from './redirects.ts'
import type { AddressRecord, PortSpec } from './repository.ts'
import { renderAdmission, renderChange, renderExpulsion, renderOpenings, renderRedirects, renderRuleset, type GuestRules, type Opening } from './ruleset.ts'
import type { Settings } from './settings.ts'
import { createTools, type NetworkTools } from './tools.ts'
import { NEXT_HOP, removeUplink, settleUplink, uplinkFault } from './uplink.ts'

export interface NetworkOptions {
  readonly settings: Settings
  readonly commands: HostCommands
  readonly processes: ProcessRegister
  readonly log: Logger
  /** the host's current IPv4 addresses: guests may not reach the host through them */
  readonly hostAddresses: () => readonly string[]
  /** absent: what the kernel has */
  readonly bridgeRoom?: BridgeRoom
  /** where the host's name servers may stand; absent: at the usual places */
  readonly resolverFiles?: readonly string[]
}

/** A guest that has, or is to have, a TAP. */
export interface Port extends AddressRecord { readonly spec: PortSpec }

export class Network {
  readonly inside: NetworkTools
  readonly #outside: NetworkTools
  readonly #options: NetworkOptions
  readonly #forwarder: Forwarder
  /** the egress proxy's own, so that its queries do not wait behind guests' */
  readonly #proxyForwarder: Forwarder
  readonly #bridges: Bridges
  readonly #locks = createLocks()
  readonly #ports = new Map<string, Port>()
  /** by instance */
  readonly #openings = new Map<string, readonly Opening[]>()
  /** by instance: openings that a change was to close and that may still be open, or have connections, since it failed */
  readonly #unclosed = new Map<string, readonly Opening[]>()
  /** instances whose TAPs are down on purpose */
  readonly #suspended = new Set<string>()
  #device: string | undefined
  #denied: readonly string[] = []
  /** undefined: this server has not been told yet */
  #redirects: Redirects | undefined
  #table: Promise<string> | undefined
  #isSettled = false

  constructor (options: NetworkOptions) {
    const { settings, commands } = options
    this.#options = options
    this.inside = createTools(commands, { name: settings.namespace, path: settings.namespacePath })
    this.#outside = createTools(commands)
    this.#bridges = new Bridges(this.inside, settings.gatewayMac, options.bridgeRoom)
    this.#forwarder = new Forwarder({ ...options, audience: 'guests' })
    this.#proxyForwarder = new Forwarder({ ...options, audience: 'proxy' })
  }

  async exists (): Promise<boolean> {
    return await isNamespace(this.#options.settings.namespacePath)
  }

  get isSettled (): boolean { return this.#isSettled }

  get ports (): ReadonlyMap<string, Port> { return this.#ports }

  /**
   * Makes everything that is missing, repairs what exists, and removes what belongs to no address of `known`, which is called while nobody
   * else changes the network. A guest counts as plugged when its TAP exists: without one no VMM can be attached.
   */
  async settle (known: () => Iterable<AddressRecord>): Promise<void> {
    await this.#locks.hold('network', async () => {
      this.#isSettled = false
      const { settings, commands } = this.#options
      await openTunDevice()
      await ensureNamespace(commands, settings)
      const links = await readOwnLinks(this.inside, settings)
      this.#ports.clear()
      for (const record of known()) {
        if (!links.has(tapOf(record.instanceId))) this.#suspended.delete(record.instanceId)
        if (record.spec !== undefined && links.has(tapOf(record.instanceId))) this.#ports.set(record.instanceId, { ...record, spec: record.spec })
      }
      const ports = [...this.#ports.values()]
      await ensureBridge(this.inside, links, settings)
      await this.#settleRules()
      await removeStrays(this.inside, links, ports)
      await openBridge(this.inside)
      await this.#bridges.settle(links, ports)
      await repairPorts(this.inside, links, ports, { suspended: this.#suspended, bridges: this.#bridges })
      await this.#settleWayOut()
      this.#isSettled = true
    })
  }

  async plug (port: Port): Promise<void> {
    await this.#locks.share('network', async () => {
      const bridge = await this.#bridges.take(port.instanceId)
      this.#ports.set(port.instanceId, port)
      try {
        const lines = createLines(port, port.spec, port.spec.uid ?? process.getuid?.() ?? 0, bridge)
        await this.#applyRules(renderAdmission(guestOf(port)))
        await this.inside.ip(lines.ip)
        await Promise.all([this.inside.bridge(lines.bridge), this.inside.tc(lines.tc)])
      } catch (error) {
        await this.#remove(port).catch((failure: unknown) => this.#options.log.warn({ err: failure, instanceId: port.instanceId }, 'a TAP that was not finished could not be removed'))
        throw error
      }
    })
  }

  /** Applies new rules to a plugged guest; its earlier connections end. */
  async change (port: Port): Promise<void> {
    await this.#locks.share('network', async () => {
      this.#ports.set(port.instanceId, port)
      await this.#applyRules(renderChange(guestOf(port)))
      await endConnections(this.inside, port.ip)
    })
  }

  /** Idempotent. */
  async unplug (port: Port): Promise<void> {
    await this.#locks.share('network', async () => { await this.#remove(port) })
  }

  /** Takes the TAP down; its records stay. */
  async suspend (port: Port): Promise<void> {
    await this.#locks.share('network', async () => {
      // First: otherwise a repair of the network would bring it up again.
      this.#suspended.add(port.instanceId)
      await Promise.all([this.inside.ip(stateLines(port.instanceId, 'down')), endConnections(this.inside, port.ip)])
    })
  }

  /** False when it was not suspended, or has gone since. */
  async resume (port: Port): Promise<boolean> {
    return await this.#locks.share('network', async () => {
      if (!this.#isSettled || !this.#suspended.delete(port.instanceId)) return false
      try {
        await this.inside.ip(stateLines(port.instanceId, 'up'))
        return true
      } catch (error) {
        if (!(error instanceof HostCommandFailed)) throw error
        return false
      }
    })
  }

  /** The host's end of the link; undefined without one. */
  get hostSide (): HostSide | undefined {
    const device = this.#device
    return device === undefined || !this.#isSettled ? undefined : { link: this.#options.settings.uplink.hostLink, device, loopbackAs: NEXT_HOP }
  }

  /** Opens ports of an instance to the outside; its connections to other ports end. */
  async open (instanceId: string, ip: string, ports: readonly InboundPort[]): Promise<void> {
    await this.#locks.share('network', async () => {
      const before = [...this.#openings.get(instanceId) ?? [], ...this.#unclosed.get(instanceId) ?? []]
      if (ports.length === 0) this.#openings.delete(instanceId)
      else this.#openings.set(instanceId, ports.map((port) => ({ ...port, ip })))
      if (!this.#isSettled || (before.length === 0 && ports.length === 0)) return
      this.#unclosed.set(instanceId, before)
      // Inside the lock, so that the last of concurrent changes includes all earlier ones.
      await this.#locks.hold('rules', async () => { await this.inside.nft(renderOpenings([...this.#openings.values()].flat())) })
      const closed = before.filter(({ protocol, port }) => !ports.some((kept) => kept.protocol === protocol && kept.port === port))
      for (const { protocol, port } of closed) await endConnectionsTo(this.inside, ip, protocol, port)
      this.#unclosed.delete(instanceId)
    })
  }

  async endConnections (ip: string): Promise<void> {
    await endConnections(this.inside, ip)
  }

  /** The TCP connections that the kernel tracks, as text. */
  async tracked (): Promise<string> {
    return await this.inside.run('conntrack', LIST_TCP)
  }

  async counters (instanceId: string): Promise<NetworkCounters | undefined> {
    if (!this.#ports.has(instanceId)) return undefined
    // Concurrent callers share one read of the table.
    this.#table ??= readDeviceTable(this.inside, this.#forwarder.pid).finally(() => { this.#table = undefined })
    return countersOf(await this.#table, tapOf(instanceId))
  }

  /** DNS servers that answer queries from within the namespace. */
  async nameServers (): Promise<readonly string[]> {
    return await this.#forwarder.servers()
  }

  /** Checks what changes by itself: the forwarder may end; the host may get another address, another default route, or lose all of its rules. */
  async tend (): Promise<void> {
    await this.#locks.hold('network', async () => {
      if (!this.#isSettled) return
      await Promise.all(this.#forwarders().map(async (forwarder) => await forwarder.tend()))
      if (this.#deniedNow().join() !== this.#denied.join()) await this.#settleRules()
      const fault = await uplinkFault(this.#options.settings, this.#outside, this.#device)
      if (fault === undefined) return
      this.#options.log.warn({ fault }, 'the way out of the guests\' network is not as it was made; it is made again')
      await this.#settleWayOut()
    })
  }

  /** Removes everything, unless it is in use: by a guest, another process in the namespace, or an open socket there. */
  async removeUnused (): Promise<void> {
    await this.#locks.hold('network', async () => {
      const { settings, commands } = this.#options
      if (!this.#isSettled || this.#ports.size > 0 || (await this.exists() && await this.#hasOtherUsers())) return
      this.#isSettled = false
      await Promise.all(this.#forwarders().map(async (forwarder) => await forwarder.end()))
      await removeUplink(settings, this.#outside)
      await removeNamespace(commands, settings)
    })
  }

  async #hasOtherUsers (): Promise<boolean> {
    const { settings, commands } = this.#options
    const own = this.#forwarders().map(({ pid }) => pid)
    if ((await processesIn(commands, settings)).some((pid) => !own.includes(pid))) return true
    // Sockets that systemd holds for a service that does not run: their process lives elsewhere.
    const listening = await this.inside.run('ss', ['--listening', '--numeric', '--no-header', '--tcp', '--udp'])
    return listening.split('\n').some((line) => line !== '' && ![settings.gateway, PROXY_DNS].some((address) => line.includes(` ${address}:53 `)))
  }

  async #settleWayOut (): Promise<void> {
    const device = this.#device = await settleUplink(this.#options.settings, this.inside, this.#outside)
    await Promise.all(this.#forwarders().map(async (forwarder) => await forwarder.settle(device !== undefined)))
  }

  #forwarders (): Forwarder[] {
    return [this.#forwarder, this.#proxyForwarder]
  }

  async #remove (port: Port): Promise<void> {
    try {
      await this.#applyRules(renderExpulsion(guestOf(port)))
      // No packet of the guest passes any more, so the order of the rest does not matter.
      await Promise.all([this.#removeLinks(port), this.inside.bridgeEach(this.#bridges.forgetLines(port)), endConnections(this.inside, port.ip)])
    } catch (error) {
      if (await this.exists()) throw error
      // Somebody has removed the namespace, and with it everything in it.
      this.#isSettled = false
    }
    this.#ports.delete(port.instanceId)
    this.#bridges.giveBack(port.instanceId)
    this.#suspended.delete(port.instanceId)
  }

  async #removeLinks (port: Port): Promise<void> {
    try {
      await this.inside.ip(removeLines(port, port.spec))
    } catch (error) {
      if (!(error instanceof HostCommandFailed)) throw error
      // Some of it did not exist: whatever the first failure was, it only matters that nothing is left.
      await this.inside.ipEach(removeLines(port, undefined))
      if ((await readLinks(this.inside)).has(tapOf(port.instanceId))) throw error
    }
  }

  /** From now on, and for the rules that are made later. */
  async redirect (redirects: Redirects): Promise<void> {
    await this.#locks.hold('network', async () => {
      this.#redirects = redirects
      if (this.#isSettled) await this.#applyRules(renderRedirects(redirects))
    })
  }

  /** Keeps an earlier server's redirects until this server is told: meanwhile no packet of a guest may bypass the proxy. */
  async #redirectsNow (): Promise<Redirects> {
    if (this.#redirects !== undefined) return this.#redirects
    const { proxy } = this.#options.settings
    const before = await this.inside.run('nft', LIST_REDIRECTS).then(redirectsIn, (error: unknown) => {
      // There are no rules yet, or those of an earlier version.
      if (error instanceof HostCommandFailed) return undefined
      throw error
    })
    return before ?? redirectsOf(listenersFor(DEFAULT_PORTS, proxy))
  }

  async #settleRules (): Promise<void> {
    const denied = this.#deniedNow()
    const redirects = await this.#redirectsNow()
    await this.#applyRules(renderRuleset({ settings: this.#options.settings, denied, redirects }, [...this.#ports.values()].map(guestOf), [...this.#openings.values()].flat()))
    this.#denied = denied
  }

  #deniedNow (): string[] {
    const { settings, hostAddresses } = this.#options
    const own = settings.uplink.interface === 'none' ? [] : hostAddresses().filter((address) => !address.startsWith('127.'))
    return [...settings.denied, ...own]
  }

  // One after the other: concurrent nft transactions would collide, and start over.
  async #applyRules (text: string): Promise<void> {
    await this.#locks.hold('rules', async () => { await this.inside.nft(text) })
  }
}

function guestOf ({ instanceId, ip, mac, spec }: Port): GuestRules {
  return { tap: tapOf(instanceId), ip, mac, egress: spec.egress, ...spec.uid === undefined ? {} : { uid: spec.uid } }
}
