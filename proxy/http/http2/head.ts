// Reads the header of an HTTP/2 request: the same checks as for HTTP/1.1.
import type { IncomingHttpHeaders } from 'node:http2'
import type { Limits } from '../../config/schema.ts'
import { endsHere } from '../../gate/max-forwards.ts'
import type { ReasonCode } from '../../contract/reasons.ts'

export interface StreamHead {
  readonly method: string
  readonly path: string
  readonly host: string
  readonly mayOmitHost: false
  /** names and values in turn, without the pseudo-headers and without `host` */
  readonly raw: readonly string[]
  /** announced length of the body */
  readonly contentLength: number | undefined
}

/** The header, or why the request is refused. */
export function readStreamHead (headers: IncomingHttpHeaders, rawHeaders: readonly string[], limits: Limits): StreamHead | ReasonCode {
  const method = headers[':method'] ?? ''
  const path = headers[':path'] ?? ''
  if (rawHeaders.length > limits.headerCount * 2) return 'headers_too_large'
  if (method === 'TRACE' || method === 'CONNECT' || headers[':protocol'] !== undefined) return 'method_refused'
  if (headers[':scheme'] !== 'https' || !(path.startsWith('/') || (path === '*' && method === 'OPTIONS'))) return 'bad_request'
  const raw: string[] = []
  let authority = headers[':authority']
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    const value = rawHeaders[index + 1] ?? ''
    if (name.startsWith(':')) continue
    if (name === 'max-forwards' && method === 'OPTIONS' && endsHere(value)) return 'method_refused'
    if (name !== 'host') {
      raw.push(name, value)
      continue
    }
    // `host` may repeat `:authority` or replace it; it may not differ.
    if (authority !== undefined && authority.toLowerCase() !== value.toLowerCase()) return 'misdirected'
    authority = value
  }
  const length = headers['content-length']
  return authority === undefined ? 'bad_host' : { method, path, host: authority, mayOmitHost: false, raw, contentLength: length === undefined ? undefined : Number(length) }
}
