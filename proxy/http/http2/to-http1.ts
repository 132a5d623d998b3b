// A guest's HTTP/2 request to an origin that speaks HTTP/1.1 only.
import { constants } from 'node:http2'
import { reasonOf } from '../../contract/reasons.ts'
import { requestTrailers } from '../../gate/request-fields.ts'
import { hasNoBody } from '../../gate/status.ts'
import { passUp } from '../pass-up.ts'
import type { Pump } from '../pump.ts'
import type { AnswerHead } from '../../upstream/http1/answer-head.ts'
import type { OriginCall, OutgoingHead, RequestCarrier } from '../../upstream/http1/call.ts'
import type { Origin } from '../../upstream/origin.ts'
import type { StreamHead } from './head.ts'
import { requestLines } from './headers.ts'
import type { Reply } from './reply.ts'

/** Sends the request on as HTTP/1.1. */
export function forwardToHttp1 (reply: Reply, head: StreamHead, origin: Origin): void {
  const call = new Http1Call(reply, head, origin)
  reply.far = call
  origin.http1.request(call)
}

class Http1Call implements OriginCall {
  readonly #reply: Reply
  readonly #head: StreamHead
  readonly #origin: Origin
  #connection: RequestCarrier | undefined
  #down: Pump | undefined

  constructor (reply: Reply, head: StreamHead, origin: Origin) {
    this.#reply = reply
    this.#head = head
    this.#origin = origin
  }

  head (): OutgoingHead | undefined {
    const { ended, stream, exchange } = this.#reply
    if (ended) return undefined
    const rules = exchange.readPolicy()
    if (rules === undefined) return undefined
    const { method, path, host, contentLength } = this.#head
    const lines = requestLines(this.#head, rules, exchange.trace)
    if (lines === undefined) {
      this.#reply.abort('bad_request')
      return undefined
    }
    return { method, path, lines: ['Host', host, ...withOneCookie(lines)], body: stream.endAfterHeaders ? 0 : contentLength ?? 'chunked' }
  }

  sending (connection: RequestCarrier): void {
    const { stream, exchange } = this.#reply
    this.#connection = connection
    exchange.headerWritten(connection)
    if (stream.endAfterHeaders) return
    let trailers: readonly string[] = []
    stream.on('trailers', (_headers, _flags, raw: string[] = []) => { trailers = raw })
    passUp(exchange, stream, connection, () => {
      const lines = requestTrailers(trailers, exchange.rules)
      if (lines === undefined) this.#reply.abort('bad_request')
      else connection.end(lines)
    })
  }

  answered ({ status, raw }: AnswerHead): void {
    if (this.#reply.ended) return this.close()
    const empty = hasNoBody(this.#reply.exchange.subject.method, status)
    this.#reply.respond(status, raw, empty)
    if (!empty && this.#connection !== undefined) this.#down = this.#reply.receive(this.#connection)
  }

  waiting (): void {}

  body (view: Buffer): void {
    // An answer without a body is complete for the guest: one that the origin sends nevertheless is not read.
    if (this.#down === undefined) return this.close()
    this.#reply.exchange.bytesOut += view.length
    this.#down.send(view)
  }

  ended (trailers: readonly string[]): void {
    if (this.#down !== undefined) this.#reply.end(this.#down, trailers)
  }

  failed (error: unknown): void {
    if (!this.#reply.stream.headersSent) this.#reply.abort(reasonOf(error))
    else this.#reply.reset(constants.NGHTTP2_INTERNAL_ERROR)
  }

  fault (error: unknown): void {
    this.#reply.exchange.fault(error)
  }

  /** The guest has cancelled the request. */
  close (): void {
    if (this.#connection === undefined) this.#origin.http1.withdraw(this)
    else this.#connection.cancel(this)
  }
}

/** HTTP/2 may split cookies over several lines; HTTP/1.1 has a single line (RFC 9113, 8.2.3). */
function withOneCookie (raw: readonly string[]): string[] {
  const lines: string[] = []
  let cookieAt = -1
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] ?? ''
    const value = raw[index + 1] ?? ''
    if (name === 'cookie' && cookieAt >= 0) {
      lines[cookieAt] += `; ${value}`
    } else {
      if (name === 'cookie') cookieAt = lines.length + 1
      lines.push(name, value)
    }
  }
  return lines
}
