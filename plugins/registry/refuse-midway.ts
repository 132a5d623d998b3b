// Ends a request during its body: the sender gets an answer, and the rest of the body is discarded.
import type { IncomingMessage, ServerResponse } from 'node:http'

/** Many clients read an answer only after they have sent their whole request. */
const LINGER_MS = 5000

export interface Refusal {
  readonly status: number
  readonly code: string
  readonly message: string
}

export function refuseMidway (request: IncomingMessage, response: ServerResponse, { status, code, message }: Refusal): void {
  // The store's side ends with the request, like an upload whose client has left.
  request.unpipe()
  if (response.headersSent || response.destroyed) {
    request.destroy()
    return
  }
  const body = JSON.stringify({ errors: [{ code, message }] })
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), connection: 'close', 'docker-distribution-api-version': 'registry/2.0' }).end(body)
  request.resume()
  const timer = setTimeout(() => { request.destroy() }, LINGER_MS)
  timer.unref()
  request.once('close', () => { clearTimeout(timer) })
}
