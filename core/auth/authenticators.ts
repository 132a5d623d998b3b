// Other ways than the Authorization header to tell whose request it is, such as a plugin's sessions. What the key may do is decided in the same place for all of them.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ApiKeyPrincipal } from '../contracts/services.ts'

/**
 * The key that a request without an Authorization header stands for; `undefined` when the request carries nothing that this authenticator knows.
 * The reply is passed so that it can be ended together with the session. Rejects with an error for the caller when what the request carries is invalid.
 */
export type Authenticator = (request: FastifyRequest, reply: FastifyReply) => Promise<ApiKeyPrincipal> | undefined

/** The service `authenticators`. */
export interface Authenticators {
  /** Adds an authenticator, which is asked after those added before; returns its removal. */
  add (authenticator: Authenticator): () => void
  /** The result of the first authenticator that knows what the request carries. */
  principalOf: Authenticator
}

declare module '../plugins/manifest.ts' {
  interface Cradle {
    readonly authenticators: Authenticators
  }
}

export function createAuthenticators (): Authenticators {
  const all = new Set<Authenticator>()
  return {
    add (authenticator) {
      all.add(authenticator)
      return () => { all.delete(authenticator) }
    },
    principalOf (request, reply) {
      for (const authenticator of all) {
        const principal = authenticator(request, reply)
        if (principal !== undefined) return principal
      }
      return undefined
    }
  }
}
