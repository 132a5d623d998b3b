// Tells a route that nobody waits for its answer any more.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** Aborts when the client goes. */
export function clientGone (request: FastifyRequest, reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  // `close` of the answer, not of the request, which is over as soon as its body has been read.
  reply.raw.once('close', () => { gone.abort() })
  if (request.raw.socket.destroyed) gone.abort()
  return gone.signal
}

/** Aborts when the client goes or the server stops. Not AbortSignal.any, which would tie each request to the server's life. */
export function untilStop ({ drainSignal }: FastifyInstance, request: FastifyRequest, reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  const gone = clientGone(request, reply)
  const end = (): void => {
    drainSignal.removeEventListener('abort', end)
    controller.abort()
  }
  drainSignal.addEventListener('abort', end)
  gone.addEventListener('abort', end)
  if (gone.aborted || drainSignal.aborted) end()
  return controller.signal
}
