// Published ports: rows in the database, a listener for each in this process, and rules of the host for those whose instances are awake.
import { randomInt } from 'node:crypto'
import { createId } from '@paralleldrive/cuid2'
import type { HostCommands, Logger } from '../../core/contracts/services.ts'
import { NotFound } from '../../core/errors/common.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import type { InstanceState, PartHost, PortSpec } from '../instances/contract.ts'
import type { NetworkService } from '../networking/contract.ts'
import { InvalidPorts, NoFreePort, NoWayToGuests, PortHeld, PortPublished, TooManyPorts } from './errors.ts'
import { Admission } from './admission.ts'
import { HostRules } from './host-rules.ts'
import type { Listener, Target } from './listeners/target.ts'
import { listenTcp } from './listeners/tcp.ts'
import { listenUdp } from './listeners/udp.ts'
import type { PortsConfig } from './manifest.ts'
import { collide, wishesOf, type Rules, type Wish } from './place.ts'
import { placeText, type PublishedPort } from './record.ts'
import type { PortsMetrics, PortsFigures } from './metrics.ts'
import type { PortRepository } from './repository.ts'
import type { Direct } from './rules.ts'
import type { PortView } from './schemas.ts'

const CHOICES = 200
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

interface Live {
  readonly port: PublishedPort
  listener: Listener | undefined
  problem: string | undefined
}

export class Ports {
  readonly #options: PortsOptions
  readonly #rules: HostRules
  readonly #locks = createLocks()
  /** by id of the port */
  readonly #live = new Map<string, Live>()
  /** ids of instances */
  readonly #awake = new Set<string>()
  readonly #admission: Admission
  #host: PartHost | undefined
  #tending: NodeJS.Timeout | undefined
  #tended: Promise<void> = Promise.resolve()

  constructor (options: PortsOptions) {
    this.#options = options
    this.#admission = new Admission(options.config, () => { options.metrics.came('full') })
    this.#rules = new HostRules({ ...options, wanted: () => this.#direct() })
  }

  get #place (): Rules { return this.#options }

  introduce (host: PartHost): void { this.#host = host }

  /** The ports of these instances are held from now on, and all others are forgotten. */
  async open (instanceIds: ReadonlySet<string>): Promise<void> {
    const { repository } = this.#options
    const all = await repository.all()
    const lost = all.filter(({ instanceId }) => !instanceIds.has(instanceId))
    await repository.remove(lost.map(({ id }) => id))
    for (const port of all) if (instanceIds.has(port.instanceId)) this.#live.set(port.id, { port, listener: undefined, problem: undefined })
  }

  /** Once it is known who is awake. */
  async adopted (): Promise<void> {
    const ids = new Set([...this.#live.values()].map(({ port }) => port.instanceId))
    for (const id of ids) {
      if (this.#host?.find(id).state === 'Running') this.#awake.add(id)
      await this.#setInbound(id)
    }
    await this.#listenAgain()
    await this.#rules.takeOver()
    this.#tending = setInterval(() => { this.#tended = this.#listenAgain() }, TEND_INTERVAL_MS).unref()
  }

  /** Ends the listeners; rules stay, as VMs do. */
  async close (): Promise<void> {
    clearInterval(this.#tending)
    await this.#tended
    await Promise.all([...this.#live.values()].map(async ({ listener }) => await listener?.close()))
  }

  /** Publishes the ports that an instance was created with. @throws port_in_use, insufficient_resources, invalid_ports, not_supported */
  async publishAll (instance: { readonly id: string, readonly name: string }, ports: readonly PortSpec[]): Promise<void> {
    await this.#publish(instance, wishesOf('ports', ports, this.#place), 'ports')
  }

  /** @throws what is wrong with them, by name of the field; nothing is looked up */
  check (ports: readonly PortSpec[]): void {
    wishesOf('ports', ports, this.#place)
    if (this.#options.network.facts.isClosed === true) throw closed('ports')
  }

  async publish (ref: string, port: PortSpec): Promise<PortView> {
    const host = this.#known()
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
    const host = this.#known()
    const { id } = host.find(ref)
    await host.hold(id, async () => {
      const live = this.#live.get(portId)
      if (live === undefined || live.port.instanceId !== id) throw NotFound('port', portId)
      await this.#take([live])
    })
  }

  /** Idempotent. */
  async releaseAll (instanceId: string): Promise<void> {
    this.#awake.delete(instanceId)
    await this.#take(this.#of(instanceId))
  }

  /** @throws not_found, ambiguous */
  ofInstance (ref: string): PortView[] {
    return this.#of(this.#known().find(ref).id).map((live) => this.#view(live))
  }

  all (): PortView[] {
    return [...this.#live.values()].map((live) => this.#view(live))
  }

  figures (): PortsFigures {
    return { ways: this.all().map(({ way }) => way), open: this.#admission.count }
  }

  /** Never rejects. A VM that is paused for a moment keeps its connections. */
  async moved (instanceId: string, to: InstanceState): Promise<void> {
    if (to === 'Running') this.#awake.add(instanceId)
    else if (to === 'Standby' || to === 'Stopped' || to === 'Shutdown') this.#awake.delete(instanceId)
    else return
    if (this.#of(instanceId).length > 0) await this.#applyRules()
  }

  /** The instance's VM is gone, and with it whoever was connected. Never rejects. */
  async cut (instanceId: string): Promise<void> {
    for (const { listener } of this.#of(instanceId)) listener?.cut()
    if (this.#awake.delete(instanceId)) await this.#applyRules()
  }

  async #publish (instance: { readonly id: string, readonly name: string }, wishes: readonly Wish[], field: string): Promise<Live[]> {
    const { config, network, repository } = this.#options
    if (network.facts.isClosed === true) throw closed(field)
    const made: Live[] = []
    await this.#locks.hold('places', async () => {
      if (this.#of(instance.id).length + wishes.length > config.perInstance) throw TooManyPorts(`instance ${instance.name}`, config.perInstance)
      if (this.#live.size + wishes.length > config.perHost) throw TooManyPorts('this host', config.perHost)
      try {
        for (const wish of wishes) made.push(await this.#hold(instance.id, wish))
        if (made.length > 0 && !await repository.insert(made.map(({ port }) => port))) throw new Error('a port that is free is published in the database')
      } catch (error) {
        for (const { port, listener } of made) {
          this.#live.delete(port.id)
          await listener?.close()
        }
        throw error
      }
    })
    try {
      await this.#setInbound(instance.id)
    } catch (error) {
      // Nobody was told of them: who asks again would find their places taken.
      await this.#take(made).catch((failure: unknown) => { this.#options.log.warn({ err: failure, instance: instance.id }, 'ports that were not published could not be taken away') })
      throw error
    }
    if (this.#awake.has(instance.id) || this.#isAwake(instance.id)) await this.#applyRules()
    return made
  }

  /** Known and held, and stored nowhere yet. */
  async #hold (instanceId: string, wish: Wish): Promise<Live> {
    const { firstChosen, lastChosen } = this.#options.config
    if (wish.hostPort !== undefined) return await this.#holdAt(instanceId, wish, wish.hostPort)
    for (let choice = 0; choice < CHOICES; choice++) {
      try {
        return await this.#holdAt(instanceId, wish, randomInt(firstChosen, lastChosen + 1))
      } catch (error) {
        if (!PortHeld.is(error)) throw error
      }
    }
    throw NoFreePort(wish.address, firstChosen, lastChosen)
  }

  async #holdAt (instanceId: string, { protocol, address, instancePort }: Wish, hostPort: number): Promise<Live> {
    const port: PublishedPort = { id: createId(), instanceId, protocol, address, hostPort, instancePort, createdAt: Date.now() }
    const other = [...this.#live.values()].find((known) => collide(known.port, port))
    if (other !== undefined) throw PortPublished(placeText(port), this.#nameOf(other.port.instanceId))
    try {
      const live = { port, listener: await this.#listen(port), problem: undefined }
      this.#live.set(port.id, live)
      return live
    } catch (error) {
      throw asTold(error, port)
    }
  }

  async #take (lives: readonly Live[]): Promise<void> {
    if (lives.length === 0) return
    // The row first: what stands without a row goes at the next start, and what has a row is served.
    await this.#options.repository.remove(lives.map(({ port }) => port.id))
    for (const { port } of lives) this.#live.delete(port.id)
    await Promise.all(lives.map(async ({ listener }) => await listener?.close()))
    for (const id of new Set(lives.map(({ port }) => port.instanceId))) await this.#setInbound(id)
    await this.#rules.apply()
  }

  async #listen (port: PublishedPort): Promise<Listener> {
    const { config, udpIdleMs } = this.#options
    const target = this.#targetOf(port)
    return port.protocol === 'tcp'
      ? await listenTcp(port.address, port.hostPort, target)
      : await listenUdp(port.address, port.hostPort, target, { heldDatagrams: config.heldDatagrams, idleMs: udpIdleMs })
  }

  #targetOf (port: PublishedPort): Target {
    const { instanceId, instancePort } = port
    return {
      port: instancePort,
      localAddress: () => this.#options.network.hostSide === undefined ? undefined : '127.0.0.1',
      awake: async (signal, client) => await this.#wake(port, signal, client),
      lease: () => this.#known().leases.take(instanceId, `port ${instancePort}`),
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
    const { address: ip } = await this.#known().waking.wake(instanceId, { signal, caller })
    if (ip === undefined) throw new Error(`instance ${instanceId} has no address`)
    this.#awake.add(instanceId)
    // Without them what is relayed finds no way back.
    if (!this.#rules.leadsTo({ ...port, ip })) await this.#rules.apply()
    this.#options.metrics.came(woken ? 'woken' : 'relayed')
    return { ip, woken }
  }

  /** Places that somebody else has taken while no server held them. */
  async #listenAgain (): Promise<void> {
    await this.#locks.hold('places', async () => {
      for (const live of this.#live.values()) {
        if (live.listener !== undefined) continue
        try {
          live.listener = await this.#listen(live.port)
          live.problem = undefined
        } catch (error) {
          const problem = asTold(error, live.port)
          const text = problem instanceof Error ? problem.message : String(problem)
          if (text !== live.problem) this.#options.log.warn({ err: error, instance: live.port.instanceId }, 'a published port cannot be held')
          live.problem = text
        }
      }
    })
  }

  async #setInbound (instanceId: string): Promise<void> {
    await this.#options.network.setInbound(instanceId, this.#of(instanceId).map(({ port: { protocol, instancePort } }) => ({ protocol, port: instancePort })))
  }

  async #applyRules (): Promise<void> {
    try {
      await this.#rules.apply()
    } catch (error) {
      this.#options.log.error({ err: error }, 'the rules for published ports could not be set')
    }
  }

  #direct (): Direct[] {
    return [...this.#live.values()].flatMap(({ port }) => {
      const ip = this.#awake.has(port.instanceId) ? this.#options.network.addressOf(port.instanceId)?.ip : undefined
      return ip === undefined ? [] : [{ ...port, ip }]
    })
  }

  #of (instanceId: string): Live[] {
    return [...this.#live.values()].filter(({ port }) => port.instanceId === instanceId)
  }

  #isAwake (instanceId: string): boolean {
    try {
      return this.#known().find(instanceId).state === 'Running'
    } catch {
      // Being created, or deleted.
      return false
    }
  }

  #nameOf (instanceId: string): string {
    try {
      return this.#known().find(instanceId).name
    } catch {
      return instanceId
    }
  }

  #known (): PartHost {
    if (this.#host === undefined) throw new Error('the instances plugin has not introduced itself')
    return this.#host
  }

  #view ({ port, listener, problem }: Live): PortView {
    const ip = this.#options.network.addressOf(port.instanceId)?.ip
    const isDirect = ip !== undefined && this.#rules.leadsTo({ ...port, ip })
    return {
      id: port.id,
      instance_id: port.instanceId,
      protocol: port.protocol,
      address: port.address,
      host_port: port.hostPort,
      instance_port: port.instancePort,
      way: isDirect ? 'direct' : listener === undefined ? 'none' : 'relayed',
      problem: problem ?? null,
      created_at: new Date(port.createdAt).toISOString()
    }
  }
}

function closed (field: string): Error {
  return NoWayToGuests(field, 'the network of this server is closed (plugins.networking.config.uplink: none), so nobody outside reaches a guest')
}

/** What the system has against a place. */
function asTold (error: unknown, port: PublishedPort): unknown {
  if (hasCode(error, 'EADDRINUSE')) return PortHeld.from(error, placeText(port))
  if (hasCode(error, 'EADDRNOTAVAIL')) return InvalidPorts.from(error, 'address', `this host has no address ${port.address}`)
  if (hasCode(error, 'EACCES')) return InvalidPorts.from(error, 'host_port', `this server is not allowed to use ${placeText(port)}`)
  return error
}
