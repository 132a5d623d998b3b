// The HTTP side of the registry: checks the caller's rights, and passes bodies on without reading them.
import type { IncomingMessage } from 'node:http'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { countedFor } from '../../core/auth/counted-for.ts'
import type { ApiKeyPrincipal } from '../../core/contracts/services.ts'
import { whenClosed } from '../../core/http/client-gone.ts'
import { hasBody } from '../../core/http/has-body.ts'
import { askForLogin, sendError } from './answers.ts'
import type { Login } from './login.ts'
import type { Relay } from './relay.ts'
import { readRequest, type RegistryRequest } from './requests.ts'

export interface RegistryRoutesOptions {
  readonly login: Login
  readonly relay: Relay
  /** the server's own name, which every client may give to an image */
  readonly host: () => string
  /** called when the server listens */
  readonly listening: () => void
}

const OPEN = { config: { scope: null }, schema: { hide: true } } as const

export function registryRoutes ({ login, relay, host, listening }: RegistryRoutesOptions): FastifyPluginAsync {
  const admitted = new WeakMap<IncomingMessage, ApiKeyPrincipal>()
  return async (app) => {
    // Layers are gigabytes: a body of any type stays a stream. The limit on bodies counts only bodies that are read.
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', (_request, _payload, done) => done(null))
    app.addHook('onListen', (done) => {
      listening()
      done()
    })

    const ping = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
      if (await login.identify(request) === undefined) return askForLogin(request, reply)
      return reply.header('docker-distribution-api-version', 'registry/2.0').send({})
    }
    app.get('/v2', OPEN, ping)
    app.get('/v2/', OPEN, ping)

    app.get('/v2/token', OPEN, async (request, reply) => {
      const principal = await login.identify(request)
      if (principal === undefined) {
        reply.header('www-authenticate', 'Basic realm="berth"')
        return sendError(reply, 'unauthorized', 'give an API key as the password')
      }
      const { token, expiresInSeconds, issuedAt } = login.exchange(principal)
      return reply.header('cache-control', 'no-store')
        .send({ token, access_token: token, expires_in: expiresInSeconds, issued_at: issuedAt.toISOString() })
    })

    app.route({
      ...OPEN,
      method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
      url: '/v2/*',
      exposeHeadRoute: false,
      // before the body: a refused push is refused at once
      onRequest: async (request, reply) => {
        const principal = await login.identify(request)
        if (principal === undefined) return askForLogin(request, reply)
        const refused = refuse(login, principal, request, reply)
        if (refused !== undefined) return refused
        admitted.set(request.raw, principal)
        // A layer takes minutes: a running request ends with its key.
        whenClosed(request, reply, login.whenEnded(principal, () => { request.raw.socket.destroy() }))
        return undefined
      },
      handler: async (request, reply) => {
        const asked = requestOf(request)
        const principal = admitted.get(request.raw)
        if (principal === undefined) return askForLogin(request, reply)
        reply.hijack()
        relay.serve(request.raw, reply.raw, { asked, host: login.mayName(principal, request.host, asked?.repository ?? '') ? request.host : host() }, countedFor(principal))
        return undefined
      }
    })
  }
}

function requestOf (request: FastifyRequest): RegistryRequest | undefined {
  return readRequest(request.method, (request.raw.url ?? '').split('?', 1)[0] ?? '')
}

function refuse (login: Login, principal: ApiKeyPrincipal, request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined {
  const asked = requestOf(request)
  if (asked === undefined) return sendError(reply, 'unsupported', `the registry has no ${request.method} ${request.url}`)
  const refusal = login.refusal(principal, asked)
  if (refusal !== undefined) return sendError(reply, 'denied', refusal)
  // A DELETE has no body; http-proxy would pass one on as the next request.
  if (request.method === 'DELETE' && hasBody(request.headers)) return sendError(reply, 'body-refused', 'a DELETE request must not have a body')
  return undefined
}
