// Who may use the registry: API keys, as bearer token or as basic password, and the short-lived tokens made from them. No trust by address.
import type { FastifyRequest } from 'fastify'
import { presentedKeys } from '../../core/auth/presented.ts'
import type { ApiKeyPrincipal, ApiKeys } from '../../core/contracts/services.ts'
import { InvalidName } from '../../core/library/oci/errors.ts'
import { LOCAL_DOMAIN, parseReference } from '../../core/library/oci/reference.ts'
import { isSharedCache, SHARED_CACHES_SCOPE } from '../../core/library/oci/shared-caches.ts'
import { READ, type RegistryRequest } from './requests.ts'

/** of a key that its tokens have, too */
const SCOPES = ['image:read', 'image:write', 'image:delete', SHARED_CACHES_SCOPE] as const

export interface IssuedToken { readonly token: string, readonly expiresInSeconds: number, readonly issuedAt: Date }

export interface Login {
  /** The owner of the key that the request presents. */
  identify (request: FastifyRequest): Promise<ApiKeyPrincipal | undefined>
  /** Why a request is refused; undefined when it is not. */
  refusal (principal: ApiKeyPrincipal, asked: Pick<RegistryRequest, 'scopes' | 'repository'>): string | undefined
  /** Whether what is pushed to a repository may also be known by the name that the client has for this server: to everybody else that means the repository of another registry. */
  mayName (principal: ApiKeyPrincipal, host: string, repository: string): boolean
  /** Calls `then` when the key has ended; returns a function that cancels this. */
  whenEnded (principal: ApiKeyPrincipal, then: () => void): () => void
  /** A short-lived token for a client that has presented a key: it has that key's rights for images, and ends with the key. A client that presents a token gets the same token back. */
  exchange (principal: ApiKeyPrincipal): IssuedToken
}

interface Twin {
  readonly token: string
  readonly issuedAt: Date
  readonly until: number
}

export function createLogin (apiKeys: ApiKeys, tokenTtlMs: number, elapsed: () => number = () => performance.now()): Login {
  // One token per key at a time: a client that asks a thousand times does not create a thousand keys.
  const latest = new Map<string, Twin>()
  // by the token's own id
  const issued = new Map<string, Twin>()

  const make = (principal: ApiKeyPrincipal, now: number): Twin => {
    const scopes = SCOPES.filter((scope) => apiKeys.allows(principal, scope))
    const { key, id, revoke } = apiKeys.issueEphemeral(`registry token of ${principal.name}`, scopes, tokenTtlMs, principal.repositories, principal)
    const twin = { token: key, issuedAt: new Date(), until: now + tokenTtlMs }
    const forget = (): void => {
      issued.delete(id)
      if (latest.get(principal.id) === twin) latest.delete(principal.id)
    }
    const release = apiKeys.whenEnded(principal, () => {
      clearTimeout(timer)
      forget()
      revoke()
    })
    const timer = setTimeout(() => {
      release()
      forget()
    }, tokenTtlMs).unref()
    latest.set(principal.id, twin)
    issued.set(id, twin)
    return twin
  }

  return {
    async identify (request) {
      for (const key of presentedKeys(request.headers.authorization ?? '')) {
        const principal = await apiKeys.verify(key)
        if (principal !== undefined) return principal
      }
      return undefined
    },
    refusal (principal, { scopes, repository }) {
      if (!scopes.some((scope) => apiKeys.allows(principal, scope))) return `missing required scope: ${scopes.join(' or ')}`
      if (scopes.includes(READ) || repository === undefined) return undefined
      if (isSharedCache(repository) && !apiKeys.allows(principal, SHARED_CACHES_SCOPE)) return `missing required scope: ${SHARED_CACHES_SCOPE}`
      return apiKeys.mayWrite(principal, `${LOCAL_DOMAIN}/${repository}`) ? undefined : `this key may not write to the repository ${repository}`
    },
    mayName: (principal, host, repository) => apiKeys.mayWrite(principal, normalised(`${host}/${repository}`)),
    whenEnded: (principal, then) => apiKeys.whenEnded(principal, then),
    exchange (principal) {
      const now = elapsed()
      const known = latest.get(principal.id)
      // issued again only while at least half of its time is left
      const young = known !== undefined && known.until - now > tokenTtlMs / 2 ? known : undefined
      const { token, issuedAt, until } = issued.get(principal.id) ?? young ?? make(principal, now)
      return { token, issuedAt, expiresInSeconds: Math.floor((until - now) / 1000) }
    }
  }
}

// As an image reference is read, which has several ways to write a repository. Of what is none, no image gets a name.
function normalised (written: string): string {
  try {
    return parseReference(written).repository
  } catch (error) {
    if (InvalidName.is(error)) return written
    throw error
  }
}
