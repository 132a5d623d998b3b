// A stop that lets running requests end, tells endless ones to end, and waits for neither forever.
import { setMaxListeners } from 'node:events'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyInstance {
    /** Aborts when the server begins to stop: answers without an end of their own (SSE, WebSockets) end then. */
    drainSignal: AbortSignal
  }
}

/** Adds `drainSignal`, and closes what is still open `timeoutMs` after a stop began. */
export function drainOnClose (app: FastifyInstance, timeoutMs: number): void {
  const controller = new AbortController()
  // As many as there are endless answers, each of which takes its own away: Node's warning of a leak at more than ten would be wrong.
  setMaxListeners(0, controller.signal)
  // closeAllConnections() forgets sockets that were upgraded
  const sockets = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  app.decorate('drainSignal', controller.signal)
  // Only connections that idle when the stop begins are closed by Node; the others would be kept alive after their answer.
  app.addHook('onResponse', (request, _reply, done) => {
    if (controller.signal.aborted) request.raw.socket.end()
    done()
  })
  app.addHook('preClose', (done) => {
    controller.abort()
    // Node counts a connection that has never asked for anything as busy, and clients keep such ones ready.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
    const deadline = setTimeout(() => {
      app.log.warn({ connections: sockets.size }, 'connections were cut: they did not end in time')
      for (const socket of sockets) socket.destroy()
    }, timeoutMs)
    app.server.once('close', () => clearTimeout(deadline))
    if (!app.server.listening) clearTimeout(deadline)
    done()
  })
}
