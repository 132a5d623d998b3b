// Keys that live in this process only and are never stored.
import type { ApiKeyPrincipal } from '../contracts/services.ts'
import { durableIdOf } from './durable-id.ts'
import { hashKey } from './key-text.ts'

interface Entry { readonly principal: ApiKeyPrincipal, readonly expiresAt: number }

export interface ProcessKeys {
  /** Accepts `key` until `expiresAt` on the same clock; returns the function that ends it earlier. */
  add (key: string, principal: ApiKeyPrincipal, expiresAt: number): () => void
  find (hash: string): Entry | undefined
  /** By its durable id. */
  findById (id: string): Entry | undefined
}

export function createProcessKeys (elapsed: () => number): ProcessKeys {
  const entries = new Map<string, Entry>()
  return {
    add (key, principal, expiresAt) {
      const now = elapsed()
      for (const [hash, entry] of entries) if (entry.expiresAt <= now) entries.delete(hash)
      const hash = hashKey(key)
      entries.set(hash, { principal, expiresAt })
      return () => { entries.delete(hash) }
    },
    find: (hash) => entries.get(hash),
    findById: (id) => [...entries.values()].find(({ principal }) => durableIdOf(principal) === id)
  }
}
