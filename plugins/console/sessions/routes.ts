// Logging in and out. Only the pages use these routes, so they are not in the API's document.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { ApiKeyPrincipal, ApiKeys } from '../../../core/contracts/services.ts'
import { ANY_KEY } from '../../../core/http/authorize.ts'
import { BadKey, ForeignRequest, SessionEnded, TooManyAttempts } from '../errors.ts'
import type { Attempts } from './attempts.ts'
import { clearCookie, sessionSecret, setCookie } from './cookie.ts'
import { checkOwnPage } from './own-page.ts'
import type { Session, Sessions } from './sessions.ts'
import type { Tickets } from './tickets.ts'

const OPEN = { scope: null }
const LogIn = Type.Object({ key: Type.String({ minLength: 1, maxLength: 256 }) }, { additionalProperties: false })

export interface SessionParts {
  readonly apiKeys: ApiKeys
  readonly sessions: Sessions
  readonly tickets: Tickets
  readonly attempts: Attempts
}

export function sessionRoutes ({ apiKeys, sessions, tickets, attempts }: SessionParts): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.addHook('onSend', async (_request, reply) => { reply.header('cache-control', 'no-store') })

    app.post('/console/session', { config: { ...OPEN, errors: [BadKey, ForeignRequest, TooManyAttempts] }, schema: { hide: true, body: LogIn } }, async (request, reply) => {
      checkOwnPage(request)
      const principal = await apiKeys.verify(request.body.key)
      if (principal === undefined) {
        const wait = attempts.note(request.ip)
        throw wait > 0 ? TooManyAttempts(wait) : BadKey()
      }
      // An earlier session of the browser is never continued.
      const before = sessionOf(sessions, request)
      if (before !== undefined) sessions.end(before.id)
      const { secret, session } = sessions.begin(principal)
      reply.header('set-cookie', setCookie(request, secret, (session.expiresAt - Date.now()) / 1000))
      return viewOf(principal, session)
    })

    // Not 401 without a session: that is no failure, and a browser would report it as one.
    app.get('/console/session', { config: OPEN, schema: { hide: true } }, async (request) => {
      const session = sessionOf(sessions, request)
      const principal = session === undefined ? undefined : await sessions.principalOf(session)
      return session === undefined || principal === undefined ? { key: null } : viewOf(principal, session)
    })

    app.delete('/console/session', { config: { ...OPEN, errors: [ForeignRequest] }, schema: { hide: true } }, async (request, reply) => {
      checkOwnPage(request)
      const session = sessionOf(sessions, request)
      if (session !== undefined) sessions.end(session.id)
      return reply.header('set-cookie', clearCookie(request)).code(204).send()
    })

    app.post('/console/tickets', { config: { scope: ANY_KEY }, schema: { hide: true } }, async (request) => {
      const session = sessionOf(sessions, request)
      // A caller with a key needs no session.
      if (session === undefined) throw SessionEnded()
      return { ticket: tickets.issue(session.id) }
    })
  }
}

function sessionOf (sessions: Sessions, request: FastifyRequest): Session | undefined {
  const secret = sessionSecret(request)
  return secret === undefined ? undefined : sessions.find(secret)
}

function viewOf ({ id, name, scopes }: ApiKeyPrincipal, { expiresAt }: Session): { readonly key: { readonly id: string, readonly name: string, readonly scopes: readonly string[] }, readonly expires_at: string } {
  return { key: { id, name, scopes }, expires_at: new Date(expiresAt).toISOString() }
}
