// A stop that lets running requests end, tells endless ones to end, and waits for neither forever.
import { setMaxListeners } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
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
  // those that have asked for nothing yet, with the bytes that came before HTTP: those of a TLS handshake
  const silent = new Map<Socket, number>()
  app.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    silent.set(socket, socket.bytesRead)
    socket.once('close', () => {
      sockets.delete(socket)
      silent.delete(socket)
    })
  })
  app.server.on('request', ({ socket }: IncomingMessage) => silent.delete(socket))
  app.server.on('upgrade', ({ socket }: IncomingMessage) => silent.delete(socket))
  app.decorate('drainSignal', controller.signal)
  // Only connections that idle when the stop begins are closed by Node; the others would be kept alive after their answer.
  app.addHook('onResponse', (request, _reply, done) => {
    // What the server asks itself comes over no connection.
    if (controller.signal.aborted && request.raw.socket instanceof Socket) request.raw.socket.end()
    done()
  })
  app.addHook('preClose', (done) => {
    controller.abort()
    // Node counts a connection that has never asked for anything as busy, and clients keep such ones ready.
    for (const [socket, before] of silent) if (socket.bytesRead === before) socket.destroy()
    // Connections of TLS outlive `app.server`, which did not accept them; an open one keeps the process, the timer need not.
    setTimeout(() => {
      if (sockets.size === 0) return
      app.log.warn({ connections: sockets.size }, 'connections were cut: they did not end in time')
      for (const socket of sockets) socket.destroy()
    }, timeoutMs).unref()
    done()
  })
}
