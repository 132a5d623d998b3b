// One HTTP/1.1 request and its answer, between a guest and an origin, without ever holding more of a body than fits the buffers of both sides.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { reasonOf, type ReasonCode } from '../gate/reasons.ts'
import { filterHeaders } from '../response/headers.ts'
import { withoutSecrets } from '../response/echo.ts'
import type { AnswerHead } from '../upstream/http1/answer-head.ts'
import type { OriginCall, OutgoingHead } from '../upstream/http1/call.ts'
import type { OriginConnection } from '../upstream/http1/connection.ts'
import type { Origin } from '../upstream/origin.ts'
import { passUp } from '../streams/pass-up.ts'
import { Pump } from '../streams/pump.ts'
import type { Exchange, ExchangeOwner } from '../vms/exchange.ts'
import type { Services } from '../vms/services.ts'
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
  /** whether the guest waits for our word before it sends the body */
  readonly expectsContinue: boolean
  readonly services: Services
}

const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS'])

export class Forward implements OriginCall, ExchangeOwner {
  readonly #options: ForwardOptions
  #connection: OriginConnection | undefined
  #pump: Pump | undefined
  /** bytes of the answer that are still to come */
  #left = Number.POSITIVE_INFINITY
  #answered = false
  #complete = false
  #ended = false

  constructor (options: ForwardOptions) {
    this.#options = options
  }

  start (): void {
    const { exchange, response, head, origin } = this.#options
    origin.begin()
    exchange.expectedBytes = head.contentLength
    exchange.owner = this
    response.on('close', () => this.#closed())
    origin.http1.request(this)
  }

  head (): OutgoingHead | undefined {
    if (this.#ended) return undefined
    const { exchange, request, head } = this.#options
    const { subject } = exchange
    const rules = exchange.readPolicy()
    if (rules === undefined) return undefined
    const lines = requestLines(request.rawHeaders, head, rules, subject.host)
    return { method: subject.method, path: subject.path, lines, body: head.chunked ? 'chunked' : head.contentLength }
  }

  sending (connection: OriginConnection): void {
    const { exchange, response, head, expectsContinue } = this.#options
    this.#connection = connection
    exchange.headerWritten()
    if (expectsContinue) response.writeContinue()
    if (head.chunked || head.contentLength > 0) this.#sendBody(connection)
  }

  answered ({ status, reason, raw, body }: AnswerHead): void {
    const { exchange, request, response, services } = this.#options
    this.#answered = true
    const headers = filterHeaders(raw, exchange.rules, services.counters)
    exchange.status = status
    if (typeof body === 'number') this.#left = body
    // HTTP/1.0 knows no chunks: there the end of the connection is the end of the body.
    if (headers.chunked && request.httpVersionMinor > 0) headers.raw.push('Transfer-Encoding', 'chunked')
    if (services.draining()) headers.raw.push('Connection', 'close')
    response.sendDate = false
    response.writeHead(status, withoutSecrets(reason, exchange.rules, services.counters), headers.raw)
  }

  /** A stream whose first event is far away has a header that the guest waits for. */
  waiting (): void {
    const { response } = this.#options
    setImmediate(() => { if (this.#pump === undefined && !this.#complete && !this.#ended) response.flushHeaders() })
  }

  body (view: Buffer): void {
    const { exchange, response } = this.#options
    exchange.bytesOut += view.length
    this.#left -= view.length
    if (this.#left === 0) {
      // Header and last bytes leave together, and often they are all there is.
      this.#complete = true
      this.#pump?.flush()
      response.end(Buffer.from(view))
    } else if (this.#connection !== undefined) {
      this.#pump ??= new Pump(this.#connection, response, exchange.vm.exchanges)
      this.#pump.send(view)
    }
  }

  ended (trailers: readonly string[]): void {
    if (this.#complete) return
    const { exchange, response, services } = this.#options
    this.#complete = true
    this.#pump?.flush()
    if (trailers.length > 0) response.addTrailers(pairsOf(filterHeaders(trailers, exchange.rules, services.counters).raw))
    response.end()
  }

  failed (error: unknown): void {
    if (this.#ended) return
    if (!this.#mayRepeat()) return this.abort(reasonOf(error))
    this.#connection = undefined
    this.#options.origin.http1.request(this)
  }

  /**
   * An origin may close unused connections in the very moment in which one is used again. Nothing was answered, and asking twice is asking once. The next one may be as dead; each
   * that fails leaves the pool, so a new one comes at last.
   */
  #mayRepeat (): boolean {
    const { exchange, head } = this.#options
    return this.#connection?.diedUnused === true && REPEATABLE.has(exchange.subject.method) && !head.chunked && head.contentLength === 0
  }

  #sendBody (connection: OriginConnection): void {
    const { exchange, request } = this.#options
    // The answer may be over before: then Node does not tell the request that its rest will not come.
    const cut = (): void => connection.cancel(this)
    request.socket.once('close', cut)
    passUp(exchange, request, connection, () => {
      request.socket.removeListener('close', cut)
      connection.end(request.rawTrailers)
    })
  }

  /** Ends both sides for a reason of our own, with an answer when there was none yet. */
  abort (code: ReasonCode): void {
    if (this.#ended) return
    const { exchange, response } = this.#options
    this.#ended = true
    this.#connection?.cancel(this)
    if (!this.#answered && exchange.status === undefined) refuse(response, code)
    else response.destroy()
    this.#finish(code)
  }

  /** The response is over: it was sent, or the guest is gone. */
  #closed (): void {
    if (this.#complete && this.#options.response.writableFinished) return this.#finish()
    if (this.#ended) return
    this.#ended = true
    this.#connection?.cancel(this)
    this.#finish('guest_closed')
  }

  #finish (code?: ReasonCode): void {
    const { exchange, response, origin } = this.#options
    if (exchange.finished) return
    exchange.status ??= response.headersSent ? response.statusCode : undefined
    origin.done()
    exchange.finish(code)
  }
}
