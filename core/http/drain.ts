// An orderly stop: running requests may end, endless ones are told to end, and after a time all are cut.
import { setMaxListeners } from 'node:events'
import { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { connectionOf, noteConnection } from './connection.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Aborts when the server begins to stop: answers without an end of their own (SSE, WebSockets) end then. */
    drainSignal: AbortSignal
  }
}

/** Adds `drainSignal`, and cuts the connections that are still open `timeoutMs` after a stop began. */
export function drainOnClose (app: FastifyInstance, timeoutMs: number): void {
  const controller = new AbortController()
  // There is one listener for each endless answer, which removes its own: Node's warning of a leak at more than ten would be wrong.
  setMaxListeners(0, controller.signal)
  // Includes sockets that were upgraded, which closeAllConnections() forgets.
  const sockets = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    noteConnection(socket)
    socket.once('close', () => { sockets.delete(socket) })
  })
  app.decorate('drainSignal', controller.signal)
  // Node closes only connections that are idle when the stop begins; the others would be kept alive after their answer.
  app.addHook('onResponse', (request, _reply, done) => {
    // Requests that the server sends to itself have no connection.
    if (controller.signal.aborted && request.raw.socket instanceof Socket) request.raw.socket.end()
    done()
  })
  app.addHook('preClose', (done) => {
    controller.abort()
    // Node counts a connection that has never sent a request as busy, and clients keep such connections ready.
    for (const socket of sockets) if (connectionOf(socket)?.isSilent === true) socket.destroy()
    // TLS connections outlive `app.server`, which did not accept them. An open one keeps the process alive, so the timer need not.
    setTimeout(() => {
      if (sockets.size === 0) return
      app.log.warn({ connections: sockets.size }, 'connections were cut: they did not end in time')
      for (const socket of sockets) socket.destroy()
    }, timeoutMs).unref()
    done()
  })
}
