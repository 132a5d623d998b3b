// One HTTP/1.1 request and its answer, between a guest and an origin, without ever holding more of a body than fits the buffers of both sides.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { reasonOf, type ReasonCode } from '../../contract/reasons.ts'
import { requestTrailers } from '../../gate/request-fields.ts'
import { isFinalStatus } from '../../gate/status.ts'
import { filterHeaders, filterTrailers, withoutField } from '../../gate/answer-fields.ts'
import { withoutSecrets } from '../../gate/echo.ts'
import type { AnswerHead } from '../../upstream/http1/answer-head.ts'
import { BadAnswer } from '../../gate/bad-answer.ts'
import type { OriginCall, OutgoingHead, RequestCarrier } from '../../upstream/http1/call.ts'
import type { Origin } from '../../upstream/origin.ts'
import { passUp } from '../pass-up.ts'
import { Pump } from '../pump.ts'
import type { Exchange, ExchangeOwner } from '../../vms/exchange.ts'
import type { Services } from '../../vms/services.ts'
import { lengthLast } from './length-last.ts'
import { pairsOf } from './pairs.ts'
import { refuse } from './refuse.ts'
import type { RequestHead } from './request-head.ts'
import { requestLines } from './request-headers.ts'

export interface ForwardOptions {
  readonly exchange: Exchange
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly head: RequestHead
  readonly origin: Origin
  /** whether the guest waits for a 100 before it sends the body */
  readonly expectsContinue: boolean
  readonly services: Services
}

const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS'])

export class Forward implements OriginCall, ExchangeOwner {
  readonly #options: ForwardOptions
  #connection: RequestCarrier | undefined
  #pump: Pump | undefined
  /** bytes of the answer that are still to come */
  #left = Number.POSITIVE_INFINITY
  /** whether the answer went to Node as a whole */
  #complete = false
  /** whether the request was read to its end */
  #read = true
  #ended = false

  constructor (options: ForwardOptions) {
    this.#options = options
  }

  start (): void {
    const { exchange, response, head, origin } = this.#options
    origin.begin()
    exchange.expectedBytes = head.contentLength
    exchange.owner = this
    response.on('close', exchange.listener(() => this.#closed()))
    origin.http1.request(this)
  }

  head (): OutgoingHead | undefined {
    if (this.#ended) return undefined
    const { exchange, request, head } = this.#options
    const { subject } = exchange
    const rules = exchange.readPolicy()
    if (rules === undefined) return undefined
    const lines = requestLines(request.rawHeaders, head, rules, subject.host, exchange.trace)
    if (lines === undefined) {
      this.abort('bad_request')
      return undefined
    }
    return { method: subject.method, path: subject.path, lines, body: head.chunked ? 'chunked' : head.contentLength }
  }

  sending (connection: RequestCarrier): void {
    const { exchange, response, head, expectsContinue } = this.#options
    this.#connection = connection
    exchange.headerWritten(connection)
    if (expectsContinue) response.writeContinue()
    if (head.chunked || head.contentLength > 0) this.#sendBody(connection)
  }

  answered (head: AnswerHead): void {
    const { exchange, response, services } = this.#options
    const { status, reason, body } = head
    if (!isFinalStatus(status)) throw new BadAnswer('the status is not that of an answer')
    const lines = this.#answerLines(head)
    exchange.answered(status)
    if (typeof body === 'number') this.#left = body
    response.sendDate = false
    response.writeHead(status, withoutSecrets(reason, exchange.rules, services.counters), lengthLast(lines))
    if (status !== 205) return
    this.#complete = true
    response.end()
  }

  #answerLines ({ status, raw }: AnswerHead): string[] {
    const { exchange, request, services } = this.#options
    const headers = filterHeaders(raw, exchange.rules, services.counters, status)
    const mayHaveBody = status !== 204 && status !== 205 && status !== 304
    // HTTP/1.0 has no chunks: the end of the connection is the end of the body.
    const chunked = headers.chunked && request.httpVersionMinor > 0 && mayHaveBody
    let lines = headers.raw
    // Trailers come only after chunks, and Node throws when they are announced without.
    if (!chunked && lines.some(text => text.length === 7 && text.toLowerCase() === 'trailer')) lines = withoutField(lines, 'trailer')
    if (status === 205) lines.push('Content-Length', '0')
    if (chunked) lines.push('Transfer-Encoding', 'chunked')
    if (services.draining()) lines.push('Connection', 'close')
    return lines
  }

  /** The first event of a stream may be far away while the guest waits for the header, so the header is sent now. */
  waiting (): void {
    const { exchange, response } = this.#options
    setImmediate(exchange.listener(() => { if (this.#pump === undefined && !this.#complete && !this.#ended) response.flushHeaders() }))
  }

  body (view: Buffer): void {
    const { exchange, response } = this.#options
    // A 205 has no body: one that an origin sends nevertheless is not read.
    if (this.#complete) return this.#connection?.cancel(this)
    exchange.bytesOut += view.length
    this.#left -= view.length
    if (this.#left === 0) {
      // Header and last bytes are written together; often they are the whole answer.
      this.#complete = true
      this.#pump?.flush()
      response.end(Buffer.from(view))
    } else if (this.#connection !== undefined) {
      this.#pump ??= new Pump(this.#connection, response, exchange)
      this.#pump.send(view)
    }
  }

  ended (trailers: readonly string[]): void {
    if (this.#complete) return
    const { exchange, response, services } = this.#options
    const lines = trailers.length === 0 ? [] : filterTrailers(trailers, exchange.rules, services.counters)
    this.#complete = true
    this.#pump?.flush()
    if (lines.length > 0) response.addTrailers(pairsOf(lines))
    response.end()
  }

  failed (error: unknown): void {
    if (this.#ended) return
    if (!this.#mayRepeat()) return this.abort(reasonOf(error))
    this.#connection = undefined
    this.#options.origin.http1.request(this)
  }

  fault (error: unknown): void {
    this.#options.exchange.fault(error)
  }

  /**
   * Whether the request can be sent again. An origin may close an unused connection at the moment of its next use: nothing was answered then, and a repetition does no harm. The next connection may be
   * closed as well; each one that fails leaves the pool, so in the end a new one is opened.
   */
  #mayRepeat (): boolean {
    const { exchange, head } = this.#options
    return this.#connection?.diedUnused === true && REPEATABLE.has(exchange.subject.method) && !head.chunked && head.contentLength === 0
  }

  #sendBody (connection: RequestCarrier): void {
    const { exchange, request } = this.#options
    // The answer may end before the request: then Node does not tell the request that its rest will not come.
    const cut = exchange.listener(() => {
      connection.cancel(this)
      this.#bodyEnded()
    })
    this.#read = false
    request.socket.once('close', cut)
    passUp(exchange, request, connection, () => {
      request.socket.removeListener('close', cut)
      const trailers = requestTrailers(request.rawTrailers, exchange.rules)
      if (trailers === undefined) return this.abort('bad_request')
      connection.end(trailers)
      this.#bodyEnded()
    })
  }

  /** The answer may have ended long before the request: what the guest still sends belongs to this exchange. */
  #bodyEnded (): void {
    this.#read = true
    if (this.#complete && this.#options.response.writableFinished) this.#finish()
  }

  /** Ends both sides for a reason of the proxy's own. The guest gets an answer unless one has begun. */
  abort (code: ReasonCode): void {
    if (this.#ended) return
    const { exchange, response } = this.#options
    this.#ended = true
    this.#cancel()
    if (response.headersSent || code === 'guest_closed') {
      response.destroy()
    } else {
      exchange.status = undefined
      refuse(response, code)
    }
    this.#finish(code)
  }

  /** The response has ended: it was sent, or the guest is gone. */
  #closed (): void {
    if (this.#complete && this.#options.response.writableFinished) {
      if (this.#read) this.#finish()
      return
    }
    if (this.#ended) return
    this.#ended = true
    this.#cancel()
    this.#finish('guest_closed')
  }

  #cancel (): void {
    if (this.#connection === undefined) this.#options.origin.http1.withdraw(this)
    else this.#connection.cancel(this)
  }

  #finish (code?: ReasonCode): void {
    const { exchange, response, origin } = this.#options
    if (exchange.finished) return
    exchange.status ??= response.headersSent ? response.statusCode : undefined
    // Nobody reads what the origin still sends or waits for.
    this.#cancel()
    origin.done()
    exchange.finish(code)
  }
}
