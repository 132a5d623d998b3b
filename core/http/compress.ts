// Compresses large answers to reads, for clients that accept it.
import { gzip } from 'node:zlib'
import { negotiate } from '@fastify/accept-negotiator'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** Smaller answers cost more to compress than to send. */
const THRESHOLD_BYTES = 16 * 1024
const FASTEST = { level: 1 }
const COMPRESSIBLE = /^application\/(?:json|yaml)(?:;|$)/

/** Bodies of requests are not touched: a small one could grow without bounds. To be called after the hook that gives answers their entity tag, which is that of the text. */
export function compressAnswers (app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    if (!isLarge(payload) || !isCompressible(request, reply)) { done(null, payload); return }
    reply.header('vary', [reply.getHeader('vary') ?? [], 'accept-encoding'].flat().join(', '))
    if (!acceptsGzip(request)) { done(null, payload); return }
    gzip(payload, FASTEST, (error: Error | null, compressed) => {
      if (error !== null) { done(error); return }
      reply.header('content-encoding', 'gzip')
      done(null, compressed)
    })
  })
}

/** Streams are not: they are what they are for as long as they last. */
function isLarge (payload: unknown): payload is string | Buffer {
  return (typeof payload === 'string' || payload instanceof Buffer) && payload.length >= THRESHOLD_BYTES
}

/** Leaves out what is a stream, or an answer that may be remembered. */
function isCompressible ({ method, routeOptions: { config } }: FastifyRequest, reply: FastifyReply): boolean {
  return (method === 'GET' || method === 'HEAD') && config.produces === undefined && reply.getHeader('content-encoding') === undefined && COMPRESSIBLE.test(String(reply.getHeader('content-type')))
}

function acceptsGzip ({ headers: { 'accept-encoding': accepted } }: FastifyRequest): boolean {
  return accepted !== undefined && negotiate(String(accepted).toLowerCase(), ['gzip']) === 'gzip'
}
