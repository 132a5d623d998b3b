// Tells a route that nobody waits for its answer any more.
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Aborts when the client goes. */
export function clientGone (request: FastifyRequest, reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  // `close` of the answer, not of the request, which is over as soon as its body has been read.
  reply.raw.once('close', () => { gone.abort() })
  if (request.raw.socket.destroyed) gone.abort()
  return gone.signal
}
