// Keeps the connection of a refusal that is sent before the whole body was read until the sender could read it. If it is closed with unread bytes, the kernel resets it, and the answer is lost on its way.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { connectionOf } from './connection.ts'

/** for a sender that reads nothing before it has sent everything */
const LINGER_MS = 10_000
const LINGER_BYTES = 2 ** 28

/** To be called after `drainOnClose`: a server that stops waits for no sender. */
export function lingerAfterEarlyAnswers (app: FastifyInstance): void {
  app.server.on('connection', (socket: Socket) => {
    const close = socket.destroySoon.bind(socket)
    // Node calls this after the last answer of a connection.
    socket.destroySoon = () => {
      const request = connectionOf(socket)?.latest
      if (request === undefined || request.complete || socket.destroyed || app.drainSignal.aborted) close()
      else linger(socket, request, app.drainSignal)
    }
  })
  app.addHook('onRequest', (request, reply, done) => {
    const { socket } = request.raw
    if (!socket.writableEnded) return done()
    // This request followed a body that was refused, and can no longer be answered.
    reply.hijack()
    socket.destroy()
  })
}

function linger (socket: Socket, request: IncomingMessage, stop: AbortSignal): void {
  const end = (): void => { socket.destroy() }
  const timer = setTimeout(end, LINGER_MS)
  stop.addEventListener('abort', end)
  socket.once('close', () => {
    clearTimeout(timer)
    stop.removeEventListener('abort', end)
  })
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > LINGER_BYTES) end()
  })
  request.once('end', end)
  socket.end()
  request.resume()
}
