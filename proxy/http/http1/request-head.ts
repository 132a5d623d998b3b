// Reads the header of an HTTP/1.1 request once: its fields, and whether it is refused.
import type { IncomingMessage } from 'node:http'
import type { Limits } from '../../config/schema.ts'
import { endsHere } from '../../gate/max-forwards.ts'
import type { ReasonCode } from '../../contract/reasons.ts'

export interface RequestHead {
  /** names of `rawHeaders`, in lower case and in their order */
  readonly names: readonly string[]
  readonly host: string | undefined
  /** HTTP/1.0 does not require Host: over TLS the name of the handshake stands in for it */
  readonly mayOmitHost: boolean
  readonly chunked: boolean
  /** announced length of the body; 0 without one */
  readonly contentLength: number
  readonly upgrade: string | undefined
  /** header names that `Connection` lists as belonging to this hop only */
  readonly nominated: ReadonlySet<string> | undefined
}

const REFUSED_METHODS = new Set(['TRACE', 'CONNECT'])

/** The header, or why the request is refused. Node's parser has already refused what is not HTTP; these are further checks. */
export function readHead (request: IncomingMessage, limits: Limits): RequestHead | ReasonCode {
  const { method = '', url = '', rawHeaders: raw } = request
  if (raw.length > limits.headerCount * 2) return 'headers_too_large'
  if (request.httpVersionMajor !== 1 || request.httpVersionMinor > 1) return 'bad_request'
  if (REFUSED_METHODS.has(method)) return 'method_refused'
  // A target with a host of its own could differ from Host.
  if (!url.startsWith('/') && !(url === '*' && method === 'OPTIONS')) return 'bad_request'
  const names: string[] = []
  let host: string | undefined
  let connection: string | undefined
  let transferEncoding: string | undefined
  let contentLength = 0
  let upgrade: string | undefined
  for (let index = 0; index < raw.length; index += 2) {
    const name = (raw[index] ?? '').toLowerCase()
    const value = raw[index + 1] ?? ''
    names.push(name)
    switch (name) {
      case 'host':
        if (host !== undefined) return 'bad_host'
        host = value
        break
      case 'connection': connection = connection === undefined ? value : `${connection},${value}`; break
      case 'transfer-encoding': transferEncoding = transferEncoding === undefined ? value : `${transferEncoding},${value}`; break
      case 'content-length': contentLength = Number(value); break
      case 'upgrade': upgrade = value.trim().toLowerCase(); break
      case 'max-forwards':
        if (method === 'OPTIONS' && endsHere(value)) return 'method_refused'
        break
      default:
    }
  }
  if (transferEncoding !== undefined && (transferEncoding.trim().toLowerCase() !== 'chunked' || request.httpVersionMinor === 0)) return 'bad_request'
  return { names, host, mayOmitHost: request.httpVersionMinor === 0, chunked: transferEncoding !== undefined, contentLength, upgrade, nominated: nominatedBy(connection) }
}

/** The names in a `Connection` header; `undefined` when it has only the usual words. */
function nominatedBy (connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined
  return new Set(connection.split(',').map(name => name.trim().toLowerCase()))
}
