// Published ports: rows in the database, held places, and rules of the host for ports whose instances are awake.
import type { HostCommands, Logger } from '../../core/contracts/services.ts'
import { createLine } from '../../core/db/line.ts'
import { NotFound } from '../../core/errors/common.ts'
import { nowOrLater } from '../../core/jobs/now-or-later.ts'
import type { InstanceState, PartHost, PortSpec } from '../instances/contract.ts'
import type { NetworkService } from '../networking/contract.ts'
import { NoWayToGuests, TooManyPorts } from './errors.ts'
import { Admission } from './admission.ts'
import { HeldPorts, type Live } from './held.ts'
import { HostRules } from './host-rules.ts'
import type { Target } from './listeners/target.ts'
import type { PortsConfig } from './manifest.ts'
import { wishesOf, type Rules, type Wish } from './place.ts'
import { placeText, type PublishedPort } from './record.ts'
import type { PortsMetrics, PortsFigures } from './metrics.ts'
import { TakenBack } from './taken-back.ts'
import type { PortRepository } from './repository.ts'
import type { Direct } from './rules.ts'
import type { PortView } from './schemas.ts'
import { portView } from './view.ts'

const TEND_INTERVAL_MS = 5000

export interface PortsOptions {
  readonly config: PortsConfig
  readonly udpIdleMs: number
  readonly dataDir: string
  readonly repository: PortRepository
  readonly network: NetworkService
  readonly commands: HostCommands
  readonly log: Logger
  readonly hostAddresses: () => readonly string[]
  readonly metrics: PortsMetrics
}

export class Ports {
  readonly #options: PortsOptions
  readonly #rules: HostRules
  readonly #held: HeldPorts
  /** ids of instances */
  readonly #awake = new Set<string>()
  /** instances whose openings in the guests' network could not be set as they should be */
  readonly #unset = new Set<string>()
  readonly #admission: Admission
  readonly #takenBack: TakenBack
  readonly #inLine = createLine()
  /** until the stored ports have been read: the instances of the start that are still there */
  #unread: Set<string> | undefined
  #reading: Promise<void> | undefined
  #host: PartHost | undefined
  #tending: NodeJS.Timeout | undefined
  #tended: Promise<void> = Promise.resolve()
  /** whether somebody has told which instances there are; without that no port is served */
  isAdopted = false

  constructor (options: PortsOptions) {
    this.#options = options
    this.#admission = new Admission(options.config, () => { options.metrics.came('full') })
    this.#held = new HeldPorts({ ...options, targetOf: (port) => this.#targetOf(port), nameOf: (id) => this.#nameOf(id) })
    this.#takenBack = new TakenBack(async (ids) => { await options.repository.remove(ids) })
    this.#rules = new HostRules({ ...options, wanted: () => this.#direct() })
  }

  get #place (): Rules { return this.#options }

  introduce (host: PartHost): void { this.#host = host }

  /** Holds the ports of these instances from now on, and forgets all others. Never rejects: what could not be read is read later. */
  async open (instanceIds: ReadonlySet<string>): Promise<void> {
    this.#unread = new Set(instanceIds)
    try {
      await this.#held.alone(async () => { await this.#read() })
    } catch (error) {
      this.#options.log.error({ err: error }, 'the published ports could not be read; it is tried again')
    }
  }

  /** To be called once it is known which instances are awake. */
  async adopted (): Promise<void> {
    this.isAdopted = true
    await this.#begin()
    await this.#held.listenAgain()
    this.#tending = setInterval(() => { this.#tended = this.#tend() }, TEND_INTERVAL_MS).unref()
    await this.#rules.takeOver()
  }

  /** Ends the listeners; rules stay, as VMs do. */
  async close (): Promise<void> {
    clearInterval(this.#tending)
    await this.#tended
    await this.#held.close()
    await this.#takenBack.close()
  }

  /** Publishes the ports that an instance was created with. @throws port_in_use, insufficient_resources, invalid_ports, not_supported */
  async publishAll (instance: { readonly id: string, readonly name: string }, ports: readonly PortSpec[]): Promise<void> {
    await this.#publish(instance, wishesOf('ports', ports, this.#place), 'ports')
  }

  /** @throws what is invalid, by name of the field; nothing is looked up */
  check (ports: readonly PortSpec[]): void {
    wishesOf('ports', ports, this.#place)
    if (this.#options.network.facts.isClosed === true) throw closed('ports')
  }

  async publish (ref: string, port: PortSpec): Promise<PortView> {
    const host = this.#known(ref)
    const { id } = host.find(ref)
    return await host.hold(id, async (instance) => {
      if (instance.spec.network?.enabled !== true) throw NoWayToGuests('instance_port', `instance ${instance.name} has no network`)
      const [made] = await this.#publish(instance, wishesOf('', [port], this.#place), 'instance_port')
      if (made === undefined) throw new Error('a port was published that is none')
      return this.#view(made)
    })
  }

  /** @throws not_found */
  async unpublish (ref: string, portId: string): Promise<void> {
    const host = this.#known(ref)
    const { id } = host.find(ref)
    await host.hold(id, async () => {
      await this.#readAgain()
      const live = this.#held.get(portId)
      if (live === undefined || live.port.instanceId !== id) throw NotFound('port', portId)
      await this.#take([live])
    })
  }

  /** Idempotent. */
  async releaseAll (instanceId: string): Promise<void> {
    this.#awake.delete(instanceId)
    // Not while they are being read: one that is read and held by then is taken like any other, and one that is not goes with the reading.
    if (this.#unread !== undefined) await this.#held.alone(async () => { this.#unread?.delete(instanceId) })
    await this.#take(this.#held.of(instanceId))
  }

  /** @throws not_found, ambiguous */
  ofInstance (ref: string): PortView[] {
    return this.#held.of(this.#known(ref).find(ref).id).map((live) => this.#view(live))
  }

  all (): PortView[] {
    return this.#held.all().map((live) => this.#view(live))
  }

  figures (): PortsFigures {
    return { ways: this.all().map(({ way }) => way), open: this.#admission.count }
  }

  /** Never rejects. A VM that is paused for a moment keeps its connections. */
  async moved (instanceId: string, to: InstanceState): Promise<void> {
    if (to === 'Running') this.#awake.add(instanceId)
    else if (to === 'Standby' || to === 'Stopped' || to === 'Shutdown') this.#awake.delete(instanceId)
    else return
    if (this.#held.of(instanceId).length > 0) await this.#applyRules()
  }

  /** The instance's VM is gone, and so its connections end. Never rejects. */
  async cut (instanceId: string): Promise<void> {
    for (const { listener } of this.#held.of(instanceId)) listener?.cut()
    // `moved` may have heard of it first, and its rules are not in force yet: whoever is told that the instance sleeps may send at once.
    if (this.#awake.delete(instanceId) || this.#rules.isBehind) await this.#applyRules()
  }

  async #publish (instance: { readonly id: string, readonly name: string }, wishes: readonly Wish[], field: string): Promise<Live[]> {
    const { config, network } = this.#options
    if (network.facts.isClosed === true) throw closed(field)
    const made: Live[] = []
    await this.#readAgain()
    await this.#inLine(async () => await this.#held.alone(async () => {
      if (this.#held.of(instance.id).length + wishes.length > config.perInstance) throw TooManyPorts(`instance ${instance.name}`, config.perInstance)
      if (this.#held.size + wishes.length > config.perHost) throw TooManyPorts('this host', config.perHost)
      try {
        for (const wish of wishes) made.push(await this.#held.hold(instance.id, wish))
        if (made.length > 0 && !await this.#store(made.map(({ port }) => port))) throw new Error('a port that is free is published in the database')
      } catch (error) {
        await this.#held.release(made)
        throw error
      }
    }))
    try {
      await this.#setInbound(instance.id)
    } catch (error) {
      // No caller knows these ports yet: a repeated request would find their places taken.
      await this.#take(made).catch((failure: unknown) => { this.#options.log.warn({ err: failure, instance: instance.id }, 'ports that were not published could not be taken away') })
      throw error
    }
    if (this.#awake.has(instance.id) || this.#isAwake(instance.id)) await this.#applyRules()
    return made
  }

  /** False when a place is taken. */
  async #store (ports: readonly PublishedPort[]): Promise<boolean> {
    return await nowOrLater(async () => await this.#options.repository.insert(ports), () => {
      // Whoever asked takes them for not published, and they may have been stored all the same.
      this.#takenBack.add(ports.map(({ id }) => id))
    })
  }

  /** Once; must be called within `alone`. */
  async #read (): Promise<void> {
    if (this.#unread === undefined) return
    const { repository } = this.#options
    const instanceIds = this.#unread
    const all = await repository.all()
    const lost = all.filter(({ instanceId }) => !instanceIds.has(instanceId))
    await repository.remove(lost.map(({ id }) => id))
    for (const port of all) if (instanceIds.has(port.instanceId)) this.#held.add(port)
    this.#unread = undefined
  }

  /** The ports that are stored are served from now on, if they could not be read at the start. @throws when they still cannot be */
  async #readAgain (): Promise<void> {
    if (this.#unread === undefined) return
    // Shared: while the database hangs, attempts must not queue.
    this.#reading ??= this.#readNow().finally(() => { this.#reading = undefined })
    await this.#reading
  }

  async #readNow (): Promise<void> {
    await this.#held.alone(async () => { await this.#read() })
    await this.#begin()
    await this.#held.listenAgain()
    await this.#applyRules()
  }

  /** Opens the ports that were read. */
  async #begin (): Promise<void> {
    for (const id of new Set(this.#held.all().map(({ port }) => port.instanceId))) {
      if (this.#isAwake(id)) this.#awake.add(id)
      await this.#trySetInbound(id)
    }
  }

  async #take (lives: readonly Live[]): Promise<void> {
    if (lives.length === 0) return
    // The row first: rules without a row are removed at the next start, and a port with a row is served.
    await this.#options.repository.remove(lives.map(({ port }) => port.id))
    await this.#held.release(lives)
    // Nobody can ask for the end of these ports again: one failure must not keep the rest of it from being done, and `#tend` goes on with what failed.
    try {
      for (const id of new Set(lives.map(({ port }) => port.instanceId))) await this.#setInbound(id)
    } finally {
      await this.#rules.apply()
    }
  }

  /** What could not be had or set when it was due. Never rejects. */
  async #tend (): Promise<void> {
    await this.#readAgain().catch((error: unknown) => { this.#options.log.warn({ err: error }, 'the published ports could still not be read') })
    await this.#held.listenAgain()
    for (const id of this.#unset) await this.#trySetInbound(id)
    await this.#rules.check().catch((error: unknown) => { this.#options.log.warn({ err: error }, 'whether the rules for published ports are there could not be found out') })
    if (this.#rules.isBehind) await this.#applyRules()
  }

  #targetOf (port: PublishedPort): Target {
    const { instanceId, instancePort } = port
    return {
      port: instancePort,
      localAddress: () => this.#options.network.hostSide === undefined ? undefined : '127.0.0.1',
      awake: async (signal, client) => await this.#wake(port, signal, client),
      lease: () => this.#known(instanceId).leases.take(instanceId, `port ${instancePort}`),
      admit: (client) => this.#admission.enter(instanceId, client),
      refused: (error) => {
        this.#options.metrics.came('refused')
        this.#options.log.info({ err: error, instance: instanceId, port: placeText(port) }, 'a connection to a published port was not served')
      }
    }
  }

  async #wake (port: PublishedPort, signal: AbortSignal, caller: string): Promise<{ readonly ip: string, readonly woken: boolean }> {
    const { instanceId } = port
    const woken = !this.#isAwake(instanceId)
    const { address: ip } = await this.#known(instanceId).waking.wake(instanceId, { signal, caller })
    if (ip === undefined) throw new Error(`instance ${instanceId} has no address`)
    this.#awake.add(instanceId)
    // Without these rules the answers to relayed connections find no way back.
    if (!this.#rules.leadsTo({ ...port, ip })) await this.#rules.apply()
    this.#options.metrics.came(woken ? 'woken' : 'relayed')
    return { ip, woken }
  }

  async #setInbound (instanceId: string): Promise<void> {
    try {
      await this.#options.network.setInbound(instanceId, this.#held.of(instanceId).map(({ port: { protocol, instancePort } }) => ({ protocol, port: instancePort })))
      this.#unset.delete(instanceId)
    } catch (error) {
      this.#unset.add(instanceId)
      throw error
    }
  }

  /** Never rejects: `#tend` tries it again. */
  async #trySetInbound (instanceId: string): Promise<void> {
    try {
      await this.#setInbound(instanceId)
    } catch (error) {
      this.#options.log.warn({ err: error, instance: instanceId }, 'which ports of an instance are open could not be set; it is tried again')
    }
  }

  async #applyRules (): Promise<void> {
    try {
      await this.#rules.apply()
    } catch (error) {
      this.#options.log.error({ err: error }, 'the rules for published ports could not be set')
    }
  }

  #direct (): Direct[] {
    return this.#held.all().flatMap(({ port }) => {
      const ip = this.#awake.has(port.instanceId) ? this.#options.network.addressOf(port.instanceId)?.ip : undefined
      return ip === undefined ? [] : [{ ...port, ip }]
    })
  }

  #isAwake (instanceId: string): boolean {
    try {
      return this.#known(instanceId).find(instanceId).state === 'Running'
    } catch {
      // It is being created or deleted.
      return false
    }
  }

  #nameOf (instanceId: string): string {
    try {
      return this.#known(instanceId).find(instanceId).name
    } catch {
      return instanceId
    }
  }

  #known (ref: string): PartHost {
    if (this.#host === undefined) throw NotFound('instance', ref)
    return this.#host
  }

  #view ({ port, listener, problem }: Live): PortView {
    const ip = this.#options.network.addressOf(port.instanceId)?.ip
    const isDirect = ip !== undefined && this.#rules.leadsTo({ ...port, ip })
    return portView(port, isDirect ? 'direct' : listener === undefined ? 'none' : 'relayed', problem)
  }
}

function closed (field: string): Error {
  return NoWayToGuests(field, 'the network of this server is closed (plugins.networking.config.uplink: none), so nobody outside reaches a guest')
}
