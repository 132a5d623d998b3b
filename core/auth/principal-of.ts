// Whose key a request came with, in routes that nobody reaches without one.
import type { FastifyRequest } from 'fastify'
import type { ApiKeyPrincipal } from '../contracts/services.ts'

export function principalOf ({ principal }: Pick<FastifyRequest, 'principal'>): ApiKeyPrincipal {
  if (principal === null) throw new Error('a route that needs a key was reached without one')
  return principal
}
