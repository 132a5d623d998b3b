// The places (address and port of the host) that this process holds for published ports: a listener for each, and those that another process has taken meanwhile.
import { randomInt } from 'node:crypto'
import { createId } from '@paralleldrive/cuid2'
import type { Logger } from '../../core/contracts/services.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import { InvalidPorts, NoFreePort, PortHeld, PortPublished } from './errors.ts'
import type { Listener, Target } from './listeners/target.ts'
import { listenTcp } from './listeners/tcp.ts'
import { listenUdp } from './listeners/udp.ts'
import type { PortsConfig } from './manifest.ts'
import { collide, type Wish } from './place.ts'
import { placeText, type PublishedPort } from './record.ts'

const CHOICES = 200

export interface HeldOptions {
  readonly config: PortsConfig
  readonly udpIdleMs: number
  readonly log: Logger
  readonly targetOf: (port: PublishedPort) => Target
  /** the name of a port's instance */
  readonly nameOf: (instanceId: string) => string
}

export interface Live {
  readonly port: PublishedPort
  /** undefined while the place is not held */
  listener: Listener | undefined
  /** why the place is not held */
  problem: string | undefined
}

export class HeldPorts {
  readonly #options: HeldOptions
  readonly #locks = createLocks()
  /** by id of the port */
  readonly #live = new Map<string, Live>()

  constructor (options: HeldOptions) {
    this.#options = options
  }

  get size (): number { return this.#live.size }

  all (): Live[] { return [...this.#live.values()] }

  of (instanceId: string): Live[] { return this.all().filter(({ port }) => port.instanceId === instanceId) }

  get (id: string): Live | undefined { return this.#live.get(id) }

  /** Adds a port whose place is not held yet; see `listenAgain`. */
  add (port: PublishedPort): void { this.#live.set(port.id, { port, listener: undefined, problem: undefined }) }

  /** Runs `work` while nobody else takes or checks places. */
  async alone<T> (work: () => Promise<T>): Promise<T> { return await this.#locks.hold('places', work) }

  /** Holds a place that is not stored yet; must be called within `alone`. @throws PortHeld, PortPublished, NoFreePort, InvalidPorts */
  async hold (instanceId: string, wish: Wish): Promise<Live> {
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
    if (other !== undefined) throw PortPublished(placeText(port), this.#options.nameOf(other.port.instanceId))
    try {
      const live = { port, listener: await this.#listen(port), problem: undefined }
      this.#live.set(port.id, live)
      return live
    } catch (error) {
      throw asTold(error, port)
    }
  }

  /** Releases places. */
  async release (lives: readonly Live[]): Promise<void> {
    for (const { port } of lives) this.#live.delete(port.id)
    await Promise.all(lives.map(async ({ listener }) => await listener?.close()))
  }

  /** Ends all listeners. */
  async close (): Promise<void> {
    await Promise.all(this.all().map(async ({ listener }) => await listener?.close()))
  }

  /** Tries to hold again the places that another process has taken while no server held them. */
  async listenAgain (): Promise<void> {
    await this.alone(async () => {
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

  async #listen (port: PublishedPort): Promise<Listener> {
    const { config, udpIdleMs, targetOf } = this.#options
    const target = targetOf(port)
    return port.protocol === 'tcp'
      ? await listenTcp(port.address, port.hostPort, target)
      : await listenUdp(port.address, port.hostPort, target, { heldDatagrams: config.heldDatagrams, idleMs: udpIdleMs })
  }
}

/** The error for a place that the system refuses. */
function asTold (error: unknown, port: PublishedPort): unknown {
  if (hasCode(error, 'EADDRINUSE')) return PortHeld.from(error, placeText(port))
  if (hasCode(error, 'EADDRNOTAVAIL')) return InvalidPorts.from(error, 'address', `this host has no address ${port.address}`)
  if (hasCode(error, 'EACCES')) return InvalidPorts.from(error, 'host_port', `this server is not allowed to use ${placeText(port)}`)
  return error
}
