// Authenticates requests that come with a session's cookie.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Authenticator } from '../../../core/auth/authenticators.ts'
import type { ApiKeyPrincipal } from '../../../core/contracts/services.ts'
import { whenClosed } from '../../../core/http/client-gone.ts'
import { asksForWebsocket } from '../../../core/http/upgrade.ts'
import { ForeignRequest, SessionEnded } from '../errors.ts'
import { sessionSecret } from './cookie.ts'
import { checkOrigin, checkOwnPage } from './own-page.ts'
import type { Session, Sessions } from './sessions.ts'
import type { Tickets } from './tickets.ts'

/** Prefix of a ticket among the subprotocols that a WebSocket offers. The first subprotocol must be another one, which the server then selects. */
const TICKET = 'ticket.'

export function sessionAuthenticator (sessions: Sessions, tickets: Tickets): Authenticator {
  return (request, reply) => {
    const secret = sessionSecret(request)
    return secret === undefined ? undefined : principalOf(sessions, tickets, secret, request, reply)
  }
}

async function principalOf (sessions: Sessions, tickets: Tickets, secret: string, request: FastifyRequest, reply: FastifyReply): Promise<ApiKeyPrincipal> {
  checkOwnPage(request)
  const session = sessions.find(secret)
  if (session === undefined) throw SessionEnded()
  if (asksForWebsocket(request.raw)) redeem(tickets, request, session)
  const principal = await sessions.principalOf(session)
  if (principal === undefined) throw SessionEnded()
  endWithSession(sessions, session, request, reply)
  return principal
}

function redeem (tickets: Tickets, request: FastifyRequest, { id }: Session): void {
  checkOrigin(request)
  const offered = (request.raw.headers['sec-websocket-protocol'] ?? '').split(',').map((each) => each.trim())
  const ticket = offered.slice(1).find((each) => each.startsWith(TICKET))
  if (ticket === undefined || !tickets.redeem(ticket.slice(TICKET.length), id)) throw ForeignRequest('a WebSocket with a session needs an unused ticket of POST /console/tickets as its second subprotocol, ticket.<ticket>')
}

/** As core ends an unlimited answer together with its key. */
function endWithSession (sessions: Sessions, session: Session, request: FastifyRequest, reply: FastifyReply): void {
  if (!asksForWebsocket(request.raw) && request.routeOptions.config.produces === undefined) return
  const { socket } = request.raw
  whenClosed(request, reply, sessions.whenEnded(session, () => { socket.destroy() }))
}
