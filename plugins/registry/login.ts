// Who may use the registry: API keys, as bearer token or as basic password, and the short-lived tokens made from them. No trust by address.
import type { FastifyRequest } from 'fastify'
import { presentedKeys } from '../../core/auth/presented.ts'
import type { ApiKeyPrincipal, ApiKeys } from '../../core/contracts/services.ts'

const SCOPES = ['image:read', 'image:write', 'image:delete'] as const

export interface IssuedToken { readonly token: string, readonly expiresInSeconds: number, readonly issuedAt: Date }

export interface Login {
  /** The owner of the key that the request presents. */
  identify (request: FastifyRequest): Promise<ApiKeyPrincipal | undefined>
  /** Who a request is counted for: a token counts for the key that it was made from. */
  ownerOf (request: FastifyRequest, principal: ApiKeyPrincipal): string
  mayUse (principal: ApiKeyPrincipal, scopes: readonly string[]): boolean
  /** A token for somebody who has shown a key: it can do with images what that key can, and for a short time. */
  exchange (principal: ApiKeyPrincipal): IssuedToken
}

interface Twin extends IssuedToken { readonly until: number }

export function createLogin (apiKeys: ApiKeys, tokenTtlMs: number, elapsed: () => number = () => performance.now()): Login {
  // One token per key at a time: a client that asks a thousand times makes no thousand keys.
  const twins = new Map<string, Twin>()
  return {
    async identify (request) {
      for (const key of presentedKeys(request.headers.authorization ?? '')) {
        const principal = await apiKeys.verify(key)
        if (principal !== undefined) return principal
      }
      return undefined
    },
    ownerOf (request, principal) {
      const presented = presentedKeys(request.headers.authorization ?? '')
      return [...twins].find(([, twin]) => presented.includes(twin.token))?.[0] ?? principal.id
    },
    mayUse: (principal, scopes) => scopes.some((scope) => apiKeys.allows(principal, scope)),
    exchange (principal) {
      const time = elapsed()
      for (const [id, twin] of twins) if (twin.until <= time) twins.delete(id)
      const known = twins.get(principal.id)
      // given out again only while it is good for at least half of its time
      if (known !== undefined && known.until - time > tokenTtlMs / 2) {
        return { ...known, expiresInSeconds: Math.floor((known.until - time) / 1000) }
      }
      const scopes = SCOPES.filter((scope) => apiKeys.allows(principal, scope))
      const { key } = apiKeys.issueEphemeral(`registry token of ${principal.name}`, scopes, tokenTtlMs)
      const twin = { token: key, expiresInSeconds: Math.floor(tokenTtlMs / 1000), issuedAt: new Date(), until: time + tokenTtlMs }
      twins.set(principal.id, twin)
      return twin
    }
  }
}
