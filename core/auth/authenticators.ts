// Who, beside the Authorization header, can say whose request it is: a plugin that has sessions, for example. What the key may do is decided where it always is.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ApiKeyPrincipal } from '../contracts/services.ts'

/**
 * The key that a request without an Authorization header stands for; `undefined` when it carries nothing that this one knows.
 * The answer is given for what must end with it. Rejects with an error for the caller when it carries something that does not hold.
 */
export type Authenticator = (request: FastifyRequest, reply: FastifyReply) => Promise<ApiKeyPrincipal> | undefined

/** The service `authenticators`. */
export interface Authenticators {
  /** Asked from now on, after those before; returns what takes that back. */
  add (authenticator: Authenticator): () => void
  /** What the first says who knows what the request carries. */
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
