// Resolves names by the configured servers or by the system's resolver. It does not judge the addresses.
import { lookup, Resolver } from 'node:dns/promises'
import { Refusal } from '../contract/reasons.ts'
import { hasCode } from '../log/error-code.ts'

export interface ResolverOptions {
  /** `address` or `address:port`; empty for the system's resolver */
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
// getaddrinfo does not say how long an answer is valid.
const SYSTEM_TTL_MS = 10_000
const NO_SUCH_NAME = ['ENODATA', 'ENOTFOUND', 'EAI_NODATA', 'EAI_NONAME']

/** Makes the function that resolves canonical names; it rejects with a `Refusal`. IPv4 addresses come first. */
export function createResolver (options: ResolverOptions): Resolve {
  const ask = options.servers.length > 0 ? serversResolver(options) : systemResolver(options)
  return async name => {
    try {
      const answer = await withDeadline(ask(name), options.timeoutMs)
      if (answer.addresses.length === 0) throw new Refusal('resolve_failed')
      return answer
    } catch (error) {
      if (error instanceof Refusal) throw error
      throw new Refusal(hasCode(error, 'ETIMEOUT', 'EAI_AGAIN') ? 'resolve_timeout' : 'resolve_failed', { cause: error })
    }
  }
}

function systemResolver (options: ResolverOptions): Resolve {
  return async name => {
    const found = await lookup(name, { all: true, verbatim: true, family: options.ipv6 ? 0 : 4 })
    const sorted = [...found].sort((a, b) => a.family - b.family)
    return { addresses: sorted.map(entry => entry.address), ttlMs: SYSTEM_TTL_MS }
  }
}

function serversResolver (options: ResolverOptions): Resolve {
  const resolver = new Resolver({ timeout: Math.ceil(options.timeoutMs / 2), tries: 2 })
  resolver.setServers(options.servers)
  return async name => {
    const [v4, v6] = await Promise.all([
      resolver.resolve4(name, { ttl: true }).catch(noneIfAbsent),
      options.ipv6 ? resolver.resolve6(name, { ttl: true }).catch(noneIfAbsent) : []
    ])
    const found = [...v4, ...v6]
    const ttlMs = Math.min(...found.map(record => record.ttl * 1000), MAX_TTL_MS)
    return { addresses: found.map(record => record.address), ttlMs: Math.max(ttlMs, MIN_TTL_MS) }
  }
}

function noneIfAbsent (error: unknown): { address: string, ttl: number }[] {
  if (hasCode(error, ...NO_SUCH_NAME)) return []
  throw error
}

async function withDeadline<T> (work: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Refusal('resolve_timeout')), timeoutMs)
  })
  try {
    return await Promise.race([work, deadline])
  } finally {
    clearTimeout(timer)
  }
}
