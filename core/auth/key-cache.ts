// Knows stored keys without asking the database each time, and still notices within seconds that another process revoked one.
import type { ApiKeyPrincipal } from '../contracts/services.ts'
import type { ApiKeyRecord, ApiKeyRepository } from './key-repository.ts'

/** How old an answer may get, in elapsed time: by the wall clock, which somebody may set back, an answer would be believed for as long as it was set back. */
const CACHE_MS = 4000
const MAX_CACHED_KEYS = 10_000

interface Cached { readonly principal: ApiKeyPrincipal | undefined, readonly expiresAt: number, readonly staleAt: number }

type Verified = Promise<ApiKeyPrincipal | undefined> | ApiKeyPrincipal | undefined

export interface KeyCache {
  /** The principal of the key with this hash; a promise only when the database has to be asked. */
  verify (hash: string, now: number): Verified
  /** Forgets one key, or all. */
  forget (hash?: string): void
}

export function createKeyCache (repository: Pick<ApiKeyRepository, 'findByHash'>, { clock, elapsed }: { clock: () => number, elapsed: () => number }): KeyCache {
  const known = new Map<string, Cached>()
  const loading = new Map<string, Promise<ApiKeyPrincipal | undefined>>()
  // counts calls of `forget`: an answer that was asked for before such a call must not be remembered after it
  let generation = 0

  const load = async (hash: string): Promise<ApiKeyPrincipal | undefined> => {
    const asked = { at: elapsed(), generation }
    const record = await repository.findByHash(hash)
    const principal = record === undefined ? undefined : principalOf(record)
    const cached = { principal, expiresAt: record?.expiresAt ?? Infinity, staleAt: asked.at + CACHE_MS }
    if (asked.generation === generation) {
      // unknown keys are remembered too, so a stranger can fill it
      if (known.size >= MAX_CACHED_KEYS) known.clear()
      known.set(hash, cached)
    }
    return current(cached, clock())
  }

  return {
    verify (hash, now) {
      const cached = known.get(hash)
      if (cached !== undefined && cached.staleAt > elapsed()) return current(cached, now)
      const running = loading.get(hash)
      if (running !== undefined) return running
      const started = load(hash).finally(() => { if (loading.get(hash) === started) loading.delete(hash) })
      loading.set(hash, started)
      return started
    },
    forget (hash) {
      generation += 1
      loading.clear()
      if (hash === undefined) known.clear()
      else known.delete(hash)
    }
  }
}

/** The principal of a key, whether it has expired or not; `undefined` when it was revoked. */
export function principalOf (record: ApiKeyRecord): ApiKeyPrincipal | undefined {
  if (record.revokedAt !== null) return undefined
  return {
    id: record.id,
    name: record.name,
    scopes: record.scopes,
    ...record.repositories === null ? {} : { repositories: record.repositories },
    ...record.expiresAt === null ? {} : { expiresAt: record.expiresAt }
  }
}

function current (cached: Cached, now: number): ApiKeyPrincipal | undefined {
  return cached.expiresAt > now ? cached.principal : undefined
}
