// Lets a request reach its route only with a key that has the route's scope: before the body is read and before any upgrade, and once more when the body has come, which may take for ever.
import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler, preValidationHookHandler, RouteOptions } from 'fastify'
import type { Authenticators } from '../auth/authenticators.ts'
import type { ApiKeyPrincipal, ApiKeys } from '../contracts/services.ts'
import { hashOfHeader } from '../auth/presented.ts'
import { InvalidRequest } from '../errors/common.ts'
import { whenClosed } from './client-gone.ts'
import { connectionOf } from './connection.ts'
import { isPreflightRoute } from './cors.ts'
import { Forbidden, Unauthorized, UpgradeRequired } from './errors.ts'
import { hasBody } from './has-body.ts'
import { noteRouteConfig } from './route-config.ts'
import { asksForWebsocket } from './upgrade.ts'

/** Name of the decorator that marks a context whose routes need no key, for routes that a library mounts. */
export const OPEN_CONTEXT = 'routesNeedNoKey'

/** The scope of a route that takes any key. */
export const ANY_KEY = 'any key'

/** Refuses to mount a route that does not say which scope it needs: a forgotten scope must not open it. */
export function requireScope (instance: FastifyInstance, route: RouteOptions): void {
  if (route.config?.scope !== undefined) return
  if (!isPreflightRoute(route) && !instance.hasDecorator(OPEN_CONTEXT)) throw new Error(`route ${[route.method].flat().join(',')} ${route.url} lacks config.scope (null for a route that needs no key)`)
  route.config = { ...route.config, scope: null }
}

/** Ends an answer, or a body, that is a stream when its key ends. */
function endWithKey (apiKeys: ApiKeys, request: FastifyRequest, reply: FastifyReply, principal: ApiKeyPrincipal): void {
  const { socket } = request.raw
  whenClosed(request, reply, apiKeys.whenEnded(principal, () => { socket.destroy() }))
}

/** The `onRequest` hook. It stays synchronous for a key that was used lately, which is nearly always the case. */
export function authorization (apiKeys: ApiKeys, authenticators: Pick<Authenticators, 'principalOf'>): onRequestHookHandler {
  return (request, reply, done) => {
    const config = noteRouteConfig(request)
    const { scope = null } = config
    if (scope === null) { done(); return }
    const admission = { apiKeys, request, reply, config, scope }
    decide(presented(apiKeys, authenticators, request, reply), (principal) => admit(admission, principal), done)
  }
}

/**
 * The first `preValidation` hook of routes that take a body: a key that has ended while the body came does nothing more with it. A body that is still unread is read by its route, as a stream, which ends with
 * the key.
 */
export function authorizationAfterBody (apiKeys: ApiKeys, authenticators: Pick<Authenticators, 'principalOf'>): preValidationHookHandler {
  return (request, reply, done) => {
    if (request.principal === null || !hasBody(request.raw.headers)) { done(); return }
    decide(presented(apiKeys, authenticators, request, reply), (principal) => {
      if (principal === undefined) return Unauthorized('invalid token')
      if (!request.raw.readableEnded) endWithKey(apiKeys, request, reply, principal)
      return undefined
    }, done)
  }
}

/** Refuses an upgrade on any other route: the WebSocket library would answer it in its own words. */
export const refuseUpgrade: onRequestHookHandler = (request, _reply, done) => {
  done(asksForWebsocket(request.raw) ? InvalidRequest('upgrade: this path is no WebSocket') : undefined)
}

/** Refuses plain requests to a WebSocket route. */
export const requireUpgrade: onRequestHookHandler = (request, _reply, done) => {
  done(asksForWebsocket(request.raw) ? undefined : UpgradeRequired())
}

type Verified = Promise<ApiKeyPrincipal | undefined> | ApiKeyPrincipal | undefined | Error

function presented (apiKeys: ApiKeys, authenticators: Pick<Authenticators, 'principalOf'>, request: FastifyRequest, reply: FastifyReply): Verified {
  const { authorization: header } = request.raw.headers
  return header === undefined || header === '' ? withoutHeader(authenticators, request, reply) : verify(apiKeys, request, header)
}

function decide (verified: Verified, judge: (principal: ApiKeyPrincipal | undefined) => Error | undefined, done: (error?: Error) => void): void {
  if (verified instanceof Promise) verified.then((principal) => { done(judge(principal)) }, done)
  else done(verified instanceof Error ? verified : judge(verified))
}

/** A cache keeps no answer to a request with an Authorization header (RFC 9111, 3.5). Of other ways to say who asks it knows nothing, and must be told. */
function withoutHeader (authenticators: Pick<Authenticators, 'principalOf'>, request: FastifyRequest, reply: FastifyReply): Promise<ApiKeyPrincipal> | Error {
  const principal = authenticators.principalOf(request, reply)
  if (principal === undefined) return Unauthorized('authorization header required')
  reply.header('cache-control', 'no-store')
  return principal
}

function verify (apiKeys: ApiKeys, { raw: { socket } }: FastifyRequest, header: string): Verified {
  const connection = connectionOf(socket)
  const hash = connection === undefined ? hashOfHeader(header) : connection.hashOf(header)
  return hash === undefined ? Unauthorized('invalid authorization header format') : apiKeys.verifyHash(hash)
}

interface Admission {
  readonly apiKeys: ApiKeys
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly config: FastifyContextConfig
  /** that the route needs */
  readonly scope: string
}

function admit ({ apiKeys, request, reply, config, scope }: Admission, principal: ApiKeyPrincipal | undefined): Error | undefined {
  if (principal === undefined) return Unauthorized('invalid token')
  if (scope !== ANY_KEY && !apiKeys.allows(principal, scope)) return Forbidden(scope)
  request.principal = principal
  if (config.produces !== undefined || asksForWebsocket(request.raw)) endWithKey(apiKeys, request, reply, principal)
  return undefined
}
