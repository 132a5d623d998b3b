// The cookie of a session. Over TLS it has a name that browsers let nobody else set: neither a page of a neighbouring host nor one without TLS.
import type { FastifyRequest } from 'fastify'
import { SESSION_COOKIE } from '../../../core/auth/session-cookie.ts'

const SECURE = `__Host-${SESSION_COOKIE}`

/** The session's secret from the request's cookie; `undefined` without one. */
export function sessionSecret (request: FastifyRequest): string | undefined {
  const { cookie } = request.raw.headers
  if (cookie === undefined) return undefined
  const name = nameFor(request)
  for (const part of cookie.split(';')) {
    const equals = part.indexOf('=')
    if (equals > 0 && part.slice(0, equals).trim() === name) return part.slice(equals + 1).trim()
  }
  return undefined
}

/** `Set-Cookie` for a session of this many seconds. The API is at `/`, so the cookie is too. */
export function setCookie (request: FastifyRequest, secret: string, seconds: number): string {
  return [`${nameFor(request)}=${secret}`, 'Path=/', `Max-Age=${Math.max(0, Math.floor(seconds))}`, 'HttpOnly', 'SameSite=Strict', ...request.protocol === 'https' ? ['Secure'] : []].join('; ')
}

/** `Set-Cookie` that removes the cookie. */
export function clearCookie (request: FastifyRequest): string {
  return setCookie(request, '', 0)
}

function nameFor ({ protocol }: FastifyRequest): string {
  return protocol === 'https' ? SECURE : SESSION_COOKIE
}
