// Answers what is not an HTTP request; no route, hook or reply object exists for it.
import type { ConnectionError } from 'fastify'
import type { Socket } from 'node:net'

const ANSWERS: Readonly<Record<string, readonly [status: string, code: string, message: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'headers_too_large', 'the request headers are larger than this server accepts'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'request_timeout', 'the request did not arrive in time']
}

/** Fastify's `clientErrorHandler`. */
export function answerBrokenRequest (error: ConnectionError, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) { socket.destroy(); return }
  const [status, code, message] = ANSWERS[error.code] ?? ['400 Bad Request', 'invalid_request', 'this is not a valid HTTP request']
  const body = JSON.stringify({ code, message })
  socket.end(`HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`)
}
