// Updates the host's rules for the published ports whose instances are awake.
import type { HostCommands, Logger } from '../../core/contracts/services.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import type { HostSide, NetworkService } from '../networking/contract.ts'
import { areThere, endConnections, noteLink } from './leftovers.ts'
import { renderNone, renderRules, type Direct } from './rules.ts'

const TIMEOUT_MS = 20_000

export interface HostRulesOptions {
  readonly commands: HostCommands
  readonly network: Pick<NetworkService, 'hostLink' | 'hostSide'>
  readonly log: Logger
  readonly dataDir: string
  /** the rules that should exist, at the time of the call */
  readonly wanted: () => readonly Direct[]
}

export class HostRules {
  readonly #options: HostRulesOptions
  readonly #locks = createLocks()
  #asked = 0
  #done = 0
  #link: string | undefined
  /** the interface from which the existing rules lead */
  #device: string | undefined
  /** whether rules of an earlier server may still be there */
  #hasOld = false
  /** the rules that exist */
  #ports: readonly Direct[] = []
  /** guests to whom rules led whose connections are not ended yet */
  readonly #cut = new Set<string>()

  constructor (options: HostRulesOptions) {
    this.#options = options
  }

  leadsTo (port: Direct): boolean {
    return this.#ports.some((known) => isSame(known, port))
  }

  /** Whether the last change could not be made, or not to its end: `apply` tries it again. */
  get isBehind (): boolean { return this.#done < this.#asked }

  /**
   * Returns once rules that are at least as new as this call are in force. While the network is being brought in order there are none: what comes is relayed then, and
   * the rules are behind. Concurrent callers share one change. @throws when they could not be set: then the previous ones stay
   */
  async apply (): Promise<void> {
    const mine = ++this.#asked
    await this.#locks.hold('rules', async () => {
      if (this.#done >= mine) return
      const now = this.#asked
      const ports = this.#options.wanted()
      const { hostSide } = this.#options.network
      if (hostSide !== undefined) {
        // A server that has published nothing since its start reads and makes nothing.
        if (ports.length > 0 || this.#link !== undefined) await this.#replace(hostSide, ports)
      } else if (this.#hasOld || this.#ports.length > 0 || this.#cut.size > 0) {
        // Guests may have others' addresses by the time that it is in order.
        await this.#removeAll(ports)
      }
      if (hostSide !== undefined || ports.length === 0) this.#done = now
    })
  }

  /**
   * Looks whether the rules that exist are still there, and for the interface that leads out now: a restart of the host's firewall removes all that it does not know. If not,
   * they are behind. @throws when that could not be found out
   */
  async check (): Promise<void> {
    await this.#locks.hold('rules', async () => {
      const { hostSide } = this.#options.network
      if (this.isBehind || this.#ports.length === 0 || hostSide === undefined) return
      const fault = hostSide.device !== this.#device ? `${hostSide.device} leads out now` : await areThere(this.#options.commands, hostSide.link) ? undefined : 'somebody has removed them'
      if (fault === undefined) return
      this.#options.log.warn({ fault }, 'the rules for published ports are not as they were made; they are made again')
      // They led to guests, whose connections have not ended by that.
      for (const { ip } of this.#ports) this.#cut.add(ip)
      this.#ports = []
      this.#asked++
    })
  }

  /** At the start: removes or renews what an earlier server has left. @throws when that could not be done: it is behind, then */
  async takeOver (): Promise<void> {
    const { hostLink } = this.#options.network
    if (hostLink === undefined) return
    this.#link = hostLink
    this.#hasOld = true
    await this.apply()
  }

  async #replace (side: HostSide, ports: readonly Direct[]): Promise<void> {
    this.#link = side.link
    if (ports.length === 0) return await this.#removeAll(ports)
    await noteLink(this.#options.dataDir, side.link)
    // For packets that the host's own loopback sends there, and their answers.
    await this.#run('sysctl', ['--quiet', '--write', `net/ipv4/conf/${side.link}/route_localnet=1`])
    await this.#run('nft', ['-f', '-'], renderRules(side, ports))
    this.#device = side.device
    await this.#exchange(ports, ports)
  }

  async #removeAll (wanted: readonly Direct[]): Promise<void> {
    if (this.#link !== undefined) await this.#run('nft', ['-f', '-'], renderNone(this.#link))
    await this.#exchange([], wanted)
  }

  /** Ends connections to guests to whom nothing is to lead any more. */
  async #exchange (ports: readonly Direct[], wanted: readonly Direct[]): Promise<void> {
    for (const port of this.#ports) if (!wanted.some((now) => isSame(now, port))) this.#cut.add(port.ip)
    this.#ports = ports
    this.#hasOld = false
    for (const ip of this.#cut) {
      if (!wanted.some((port) => port.ip === ip)) await endConnections(this.#options.commands, ip)
      this.#cut.delete(ip)
    }
  }

  async #run (file: string, args: readonly string[], input?: string): Promise<void> {
    await this.#options.commands.run(file, args, { timeoutMs: TIMEOUT_MS, ...input === undefined ? {} : { input } })
  }
}

function isSame (a: Direct, b: Direct): boolean {
  return a.protocol === b.protocol && a.address === b.address && a.hostPort === b.hostPort && a.ip === b.ip && a.instancePort === b.instancePort
}
