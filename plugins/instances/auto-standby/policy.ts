// The policy of auto-standby, and when an instance is idle under it. Pure.
import { BlockList, isIPv6 } from 'node:net'
import type { InboundConnection } from '../../networking/contract.ts'

export interface AutoStandbyPolicy {
  readonly enabled: boolean
  /** 0: none was given; only a policy that is not enabled has this */
  readonly idleTimeoutMs: number
  /** ports of the guest; connections to them do not count */
  readonly ignoredPorts: readonly number[]
  /** CIDRs; connections from them do not count */
  readonly ignoredSources: readonly string[]
}

/** What is seen of an instance at one moment. Times are of `performance.now()`. */
export interface Sight {
  readonly now: number
  readonly connections: readonly InboundConnection[]
  /** what else keeps it awake */
  readonly leases: readonly string[]
  /** when the last lease ended */
  readonly freeSince: number | undefined
}

/** Which of the connections count. */
export function qualifying (connections: readonly InboundConnection[], { ignoredPorts, ignoredSources }: Pick<AutoStandbyPolicy, 'ignoredPorts' | 'ignoredSources'>): readonly InboundConnection[] {
  const sources = new BlockList()
  for (const cidr of ignoredSources) {
    const [address = '', prefix] = cidr.split('/')
    sources.addSubnet(address, Number(prefix), isIPv6(address) ? 'ipv6' : 'ipv4')
  }
  return connections.filter(({ port, source }) => !ignoredPorts.includes(port) && !sources.check(source, 'ipv4'))
}

/** Follows one run of an instance. */
export class Idleness {
  /** undefined: it is busy */
  idleSince: number | undefined
  /** open ones that count */
  connections = 0
  leases: readonly string[] = []
  /** when a connection was last seen that is open, or was open since the look before */
  activeAt: number | undefined
  #seen: ReadonlySet<string> = new Set()

  /** @param connections those that count */
  observe ({ now, connections, leases, freeSince }: Sight): void {
    const keys = new Set(connections.map(({ source, sourcePort, port }) => `${source} ${sourcePort} ${port}`))
    this.connections = connections.filter(({ open }) => open).length
    this.leases = leases
    // A connection that came and went between two looks is still known to the kernel.
    const isNew = [...keys].some((key) => !this.#seen.has(key))
    this.#seen = keys
    if (this.connections > 0 || isNew) this.activeAt = now
    if (this.connections > 0 || leases.length > 0) this.idleSince = undefined
    else this.idleSince = Math.max(isNew ? now : this.idleSince ?? now, freeSince ?? 0)
  }

  /** To be called when the connections could not be read: what happens meanwhile is unknown. */
  lose (): void {
    this.idleSince = undefined
  }

  /** Begins to count anew. */
  restart (now: number): void {
    if (this.idleSince !== undefined) this.idleSince = now
  }

  /** Infinity: it is busy. */
  msLeft (timeoutMs: number, now: number): number {
    return this.idleSince === undefined ? Infinity : Math.max(0, this.idleSince + timeoutMs - now)
  }
}
