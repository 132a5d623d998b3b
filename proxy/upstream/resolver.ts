// Resolves names by DNS servers: the configured ones, or those of the system, which also has names in a file. It does not judge the addresses.
//
// Never by the system's own function (getaddrinfo): it would try the host's search domains for a guest's name, and while a server is silent each call keeps one of the four threads for up to
// half a minute, with which a worker reads files, too. So a few names of one VM that nobody answers would hold up all VMs of its worker.
import { Resolver } from 'node:dns/promises'
import { isIPv4 } from 'node:net'
import { Refusal } from '../contract/reasons.ts'
import { hasCode } from '../log/error-code.ts'
import { HostsFile } from './hosts-file.ts'

export interface ResolverOptions {
  /** `address` or `address:port`; empty for those of /etc/resolv.conf, after the names of /etc/hosts */
  readonly servers: readonly string[]
  readonly timeoutMs: number
  readonly ipv6: boolean
}

export interface Answer {
  readonly addresses: readonly string[]
  readonly ttlMs: number
}

export type Resolve = (name: string) => Promise<Answer>

const MIN_TTL_MS = 5_000
const MAX_TTL_MS = 60_000
// A file does not say how long its names are valid.
const WRITTEN_TTL_MS = 10_000
const NO_SUCH_NAME = ['ENODATA', 'ENOTFOUND']
// Each server has a fifth of the time for the first answer; then they are asked again, with twice the time in each further round. The deadline comes before the last.
const FIRST_TRY_PART = 5
const TRIES = 4

/** Makes the function that resolves canonical names; it rejects with a `Refusal`. IPv4 addresses come first. */
export function createResolver (options: ResolverOptions): Resolve {
  const file = options.servers.length > 0 ? undefined : new HostsFile()
  return async name => {
    try {
      const written = await file?.addressesOf(name) ?? []
      const usable = sorted(written.filter(address => options.ipv6 || isIPv4(address)))
      const answer = usable.length > 0 ? { addresses: usable, ttlMs: WRITTEN_TTL_MS } : await askServers(name, options)
      if (answer.addresses.length === 0) throw new Refusal('resolve_failed')
      return answer
    } catch (error) {
      if (error instanceof Refusal) throw error
      throw new Refusal(hasCode(error, 'ETIMEOUT') ? 'resolve_timeout' : 'resolve_failed', { cause: error })
    }
  }
}

function sorted (addresses: readonly string[]): string[] {
  return [...addresses.filter(isIPv4), ...addresses.filter(address => !isIPv4(address))]
}

/**
 * Each name has a resolver of its own, which has no thread, reads resolv.conf as it is now, and is over at the deadline. One for all names would judge by the answers to the others for how long a
 * name is worth waiting: after quick ones it gives up in two seconds, whatever the deadline.
 */
async function askServers (name: string, { servers, timeoutMs, ipv6 }: ResolverOptions): Promise<Answer> {
  const resolver = new Resolver({ timeout: Math.ceil(timeoutMs / FIRST_TRY_PART), tries: TRIES })
  if (servers.length > 0) resolver.setServers(servers)
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Refusal('resolve_timeout')), timeoutMs)
  })
  try {
    const [v4, v6] = await Promise.race([deadline, Promise.all([
      resolver.resolve4(name, { ttl: true }).catch(noneIfAbsent),
      ipv6 ? resolver.resolve6(name, { ttl: true }).catch(noneIfAbsent) : []
    ])])
    const found = [...v4, ...v6]
    const ttlMs = Math.min(...found.map(record => record.ttl * 1000), MAX_TTL_MS)
    return { addresses: found.map(record => record.address), ttlMs: Math.max(ttlMs, MIN_TTL_MS) }
  } finally {
    clearTimeout(timer)
    resolver.cancel()
  }
}

function noneIfAbsent (error: unknown): { address: string, ttl: number }[] {
  if (hasCode(error, ...NO_SUCH_NAME)) return []
  throw error
}
