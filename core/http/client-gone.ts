// Tells that a client no longer waits for an answer, or that its connection is over.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { asksForWebsocket } from './upgrade.ts'

/**
 * Calls `closed` once the answer has closed, however: it was sent, or its client has gone. Of a WebSocket, whose connection no longer belongs to its answer: once the connection has. At once when the connection
 * has gone already, of which no event would come any more.
 */
export function whenClosed ({ raw: request }: FastifyRequest, { raw: answer }: FastifyReply, closed: () => void): void {
  const { socket } = request
  if (socket.destroyed) {
    closed()
    return
  }
  if (asksForWebsocket(request)) {
    socket.once('close', closed)
    return
  }
  answer.once('close', closed)
  // An answer that waits for the one before it on its connection: Node ties it to the connection later, and would not close it together with that until then.
  if (answer.socket === null) {
    socket.once('close', closed)
    answer.once('close', () => { socket.removeListener('close', closed) })
  }
}

/** Aborts when the client disconnects. */
export function clientGone (request: FastifyRequest, reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  // The answer's end, not the request's, which closes as soon as its body has been read.
  whenClosed(request, reply, () => { gone.abort() })
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
