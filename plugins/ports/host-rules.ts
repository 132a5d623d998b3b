// Updates the host's rules for the published ports whose instances are awake.
import type { HostCommands, Logger } from '../../core/contracts/services.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import type { HostSide, NetworkService } from '../networking/contract.ts'
import { endConnections, noteLink } from './leftovers.ts'
import { renderNone, renderRules, type Direct } from './rules.ts'

const TIMEOUT_MS = 20_000

export interface HostRulesOptions {
  readonly commands: HostCommands
  readonly network: NetworkService
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
  /** the rules that exist */
  #ports: readonly Direct[] = []

  constructor (options: HostRulesOptions) {
    this.#options = options
  }

  leadsTo (port: Direct): boolean {
    return this.#ports.some((known) => isSame(known, port))
  }

  /** Returns once rules that are at least as new as this call are in force. Concurrent callers share one change. @throws when they could not be set: then the previous ones stay */
  async apply (): Promise<void> {
    const mine = ++this.#asked
    await this.#locks.hold('rules', async () => {
      if (this.#done >= mine) return
      const now = this.#asked
      const ports = this.#options.wanted()
      // A server that has published nothing since its start reads and makes nothing.
      const side = ports.length === 0 && this.#link === undefined ? undefined : this.#options.network.hostSide
      if (side !== undefined) await this.#replace(side, ports)
      this.#done = now
    })
  }

  /** At the start: removes or renews what an earlier server has left. */
  async takeOver (): Promise<void> {
    const { hostLink, hostSide } = this.#options.network
    if (hostLink === undefined) return
    this.#link = hostLink
    if (hostSide === undefined) await this.#run('nft', ['-f', '-'], renderNone(hostLink))
    else await this.apply()
  }

  async #replace (side: HostSide, ports: readonly Direct[]): Promise<void> {
    this.#link = side.link
    const before = this.#ports
    if (ports.length === 0) {
      await this.#run('nft', ['-f', '-'], renderNone(side.link))
    } else {
      await noteLink(this.#options.dataDir, side.link)
      // For packets that the host's own loopback sends there, and their answers.
      await this.#run('sysctl', ['--quiet', '--write', `net/ipv4/conf/${side.link}/route_localnet=1`])
      await this.#run('nft', ['-f', '-'], renderRules(side, ports))
    }
    this.#ports = ports
    const left = new Set(ports.map(({ ip }) => ip))
    const gone = new Set(before.filter((port) => !ports.some((now) => isSame(now, port))).map(({ ip }) => ip))
    for (const ip of gone) if (!left.has(ip)) await endConnections(this.#options.commands, ip)
  }

  async #run (file: string, args: readonly string[], input?: string): Promise<void> {
    await this.#options.commands.run(file, args, { timeoutMs: TIMEOUT_MS, ...input === undefined ? {} : { input } })
  }
}

function isSame (a: Direct, b: Direct): boolean {
  return a.protocol === b.protocol && a.address === b.address && a.hostPort === b.hostPort && a.ip === b.ip && a.instancePort === b.instancePort
}
