// Answers of the proxy itself: a fixed text, after which the connection ends.
import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { REASONS, type ReasonCode } from '../../contract/reasons.ts'

/** The body of a refusal, for every protocol. */
export function refusalBody (code: ReasonCode): string {
  return `${JSON.stringify({ code, message: `berth-egress: ${REASONS[code].message}` })}\n`
}

/** Answers a request with the reason and closes the connection: its body, if it has one, is not read. */
export function refuse (response: ServerResponse, code: ReasonCode): void {
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  const body = refusalBody(code)
  response.shouldKeepAlive = false
  // A header that could not be written may have left this set.
  response.chunkedEncoding = false
  response.writeHead(REASONS[code].status, ['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(body)), 'Connection', 'close'])
  response.end(body)
}

/** The same on a bare connection, for a request that Node has taken away from its server. */
export function refuseOnSocket (request: IncomingMessage, socket: Duplex, code: ReasonCode): void {
  if (!socket.writable) return
  const response = responseOn(request, socket)
  refuse(response, code)
}

/** A response that writes to a bare connection and ends it. */
export function responseOn (request: IncomingMessage, socket: Duplex): ServerResponse {
  const response = new ServerResponse(request)
  // An error that nobody listens for would end the program.
  response.on('error', ignore)
  response.shouldKeepAlive = false
  // Node assigns only connections of its own servers; every duplex that it hands out with an upgrade is a socket.
  Reflect.apply(response.assignSocket, response, [socket])
  response.once('finish', () => socket.end())
  return response
}

/** A refusal as bytes, for a connection whose request could not be read. */
export function rawRefusal (code: ReasonCode): string {
  const body = refusalBody(code)
  return `HTTP/1.1 ${REASONS[code].status} Refused\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
}

function ignore (): void {}
