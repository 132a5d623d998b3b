// Tells a route that its client no longer waits for the answer.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** Aborts when the client disconnects. */
export function clientGone (request: FastifyRequest, reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  // `close` of the answer, not of the request, which closes as soon as its body has been read.
  reply.raw.once('close', () => { gone.abort() })
  if (request.raw.socket.destroyed) gone.abort()
  return gone.signal
}

/** Aborts when the client disconnects or the server stops. Not AbortSignal.any, which would keep each request in memory as long as the server. */
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
