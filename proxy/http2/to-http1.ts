// A guest's HTTP/2 request to an origin that speaks HTTP/1.1 only.
import type { ClientRequest, IncomingMessage } from 'node:http'
import { constants } from 'node:http2'
import { Refusal } from '../gate/reasons.ts'
import { pairsOf } from '../http1/pairs.ts'
import { hasCode } from '../log/error-code.ts'
import { NO_RULES } from '../policy/host-rules.ts'
import type { Origin } from '../upstream/origin.ts'
import { Pump } from '../streams/pump.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { StreamHead } from './head.ts'
import { requestLines } from './headers.ts'
import type { Reply } from './reply.ts'

/** Sends the request on as HTTP/1.1. */
export function forwardToHttp1 (reply: Reply, head: StreamHead, origin: Origin, upstream: Upstream): void {
  upstream.request({
    origin,
    method: head.method,
    path: head.path,
    ready: outgoing => start(reply, head, outgoing),
    answered: incoming => answer(reply, incoming),
    failed: error => {
      if (!reply.stream.headersSent) reply.abort(error instanceof Refusal ? error.code : 'upstream_failed')
      else reply.reset(constants.NGHTTP2_INTERNAL_ERROR)
    }
  })
}

function start (reply: Reply, head: StreamHead, outgoing: ClientRequest): void {
  const { stream: guest, exchange } = reply
  if (reply.ended) {
    outgoing.destroy()
    return
  }
  reply.far = outgoing
  const policy = exchange.vm.policy
  const rules = exchange.subject.secure ? policy.rulesFor(exchange.subject.host) : NO_RULES
  if (rules.unavailable) return reply.abort('secret_unavailable')
  const body = !guest.endAfterHeaders
  try {
    outgoing.setHeader('Host', head.authority)
    // HTTP/2 may spread one cookie header over several lines.
    for (const [name, value] of pairsOf(requestLines(head, rules))) outgoing.appendHeader(name, value)
    if (body && !outgoing.hasHeader('content-length')) outgoing.setHeader('Transfer-Encoding', 'chunked')
  } catch (error) {
    if (hasCode(error, 'ERR_INVALID_CHAR', 'ERR_INVALID_HTTP_TOKEN')) return reply.abort('bad_request')
    throw error
  }
  exchange.policy = policy
  exchange.injectedBy = rules
  reply.rules = rules
  if (body) sendBody(reply, outgoing)
  else outgoing.end()
}

function sendBody ({ stream: guest, exchange }: Reply, outgoing: ClientRequest): void {
  outgoing.flushHeaders()
  guest.on('trailers', (_headers, _flags, raw: string[] = []) => {
    if (outgoing.getHeader('transfer-encoding') !== undefined) outgoing.addTrailers(pairsOf(raw))
  })
  const pump = new Pump(guest, outgoing, exchange.vm.exchanges)
  guest.on('data', (chunk: Buffer) => {
    exchange.bytesIn += chunk.length
    pump.send(chunk)
  })
  guest.on('end', () => {
    pump.flush()
    outgoing.end()
  })
}

function answer (reply: Reply, incoming: IncomingMessage): void {
  if (reply.ended) {
    incoming.destroy()
    return
  }
  incoming.on('error', () => reply.reset(constants.NGHTTP2_INTERNAL_ERROR))
  const status = incoming.statusCode ?? 502
  const empty = reply.exchange.subject.method === 'HEAD' || status === 204 || status === 304
  reply.respond(status, incoming.rawHeaders, empty)
  if (empty) incoming.resume()
  else reply.send(incoming, () => incoming.rawTrailers)
}
