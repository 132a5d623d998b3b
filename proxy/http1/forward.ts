// One HTTP/1.1 request and its answer, between a guest and an origin, without ever holding more of a body than fits the buffers of both sides.
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { Refusal, type ReasonCode } from '../gate/reasons.ts'
import { hasCode } from '../log/error-code.ts'
import { NO_RULES, type HostRules } from '../policy/host-rules.ts'
import { filterHeaders } from '../response/headers.ts'
import { withoutSecrets } from '../response/echo.ts'
import type { Origin } from '../upstream/origin.ts'
import type { Upstream, UpstreamCall } from '../upstream/upstream.ts'
import { Pump } from '../streams/pump.ts'
import type { Exchange, ExchangeOwner } from '../vms/exchange.ts'
import type { Services } from '../vms/services.ts'
import { pairsOf } from './pairs.ts'
import { refuse } from './refuse.ts'
import type { RequestHead } from './request-head.ts'
import { writeRequestHeaders } from './request-headers.ts'

export interface ForwardOptions {
  readonly exchange: Exchange
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly head: RequestHead
  readonly origin: Origin
  /** whether the guest waits for our word before it sends the body */
  readonly expectsContinue: boolean
  readonly services: Services
  readonly upstream: Upstream
}

const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS'])

export class Forward implements UpstreamCall, ExchangeOwner {
  readonly origin: Origin
  readonly method: string
  readonly path: string
  readonly #options: ForwardOptions
  #outgoing: ClientRequest | undefined
  #rules: HostRules = NO_RULES
  #answered = false
  #complete = false
  #ended = false
  #repeated = false

  constructor (options: ForwardOptions) {
    this.#options = options
    this.origin = options.origin
    this.method = options.exchange.subject.method
    this.path = options.exchange.subject.path
  }

  start (): void {
    const { exchange, response, head, upstream } = this.#options
    this.origin.active++
    exchange.expectedBytes = head.contentLength
    exchange.owner = this
    response.on('close', () => this.#closed())
    upstream.request(this)
  }

  /** Called in the same turn in which the header is written: no policy that was replaced before can be in it. */
  ready (outgoing: ClientRequest): void {
    const { exchange, request, response, head, expectsContinue } = this.#options
    this.#outgoing = outgoing
    if (this.#ended) {
      outgoing.destroy()
      return
    }
    const policy = exchange.vm.policy
    const rules = exchange.subject.secure ? policy.rulesFor(exchange.subject.host) : NO_RULES
    if (rules.unavailable) return this.abort('secret_unavailable')
    try {
      writeRequestHeaders(outgoing, request.rawHeaders, head, rules, exchange.subject.host)
    } catch (error) {
      // Node's parser is laxer about values than its writer.
      if (hasCode(error, 'ERR_INVALID_CHAR', 'ERR_INVALID_HTTP_TOKEN')) return this.abort('bad_request')
      throw error
    }
    exchange.policy = policy
    exchange.injectedBy = rules
    this.#rules = rules
    if (expectsContinue) response.writeContinue()
    if (!head.chunked && head.contentLength === 0) outgoing.end()
    else if (!this.#repeated) this.#sendBody(outgoing)
  }

  answered (incoming: IncomingMessage): void {
    const { exchange, request, response, services } = this.#options
    if (this.#ended) {
      incoming.destroy()
      return
    }
    this.#answered = true
    const status = incoming.statusCode ?? 502
    const headers = filterHeaders(incoming.rawHeaders, this.#rules, services.counters)
    exchange.status = status
    // HTTP/1.0 knows no chunks: there the end of the connection is the end of the body.
    if (headers.chunked && request.httpVersionMinor > 0) headers.raw.push('Transfer-Encoding', 'chunked')
    if (services.draining()) headers.raw.push('Connection', 'close')
    response.sendDate = false
    incoming.on('error', () => this.abort('upstream_failed'))
    try {
      response.writeHead(status, withoutSecrets(incoming.statusMessage ?? '', this.#rules, services.counters), headers.raw)
    } catch (error) {
      if (hasCode(error, 'ERR_INVALID_CHAR', 'ERR_HTTP_INVALID_STATUS_CODE')) return this.abort('upstream_failed')
      throw error
    }
    this.#sendAnswer(incoming, this.method === 'HEAD' ? undefined : headers.contentLength)
  }

  failed (error: unknown): void {
    if (this.#ended) return
    if (this.#mayRepeat(error)) {
      this.#repeated = true
      this.#options.upstream.request(this)
      return
    }
    this.abort(error instanceof Refusal ? error.code : 'upstream_failed')
  }

  /**
   * An origin may close unused connections in the very moment in which one is used again. Nothing was answered, and asking twice is asking once. The next one may be as dead; each
   * that fails leaves the pool, so a new one comes at last.
   */
  #mayRepeat (error: unknown): boolean {
    const { head } = this.#options
    return !this.#answered && this.#outgoing?.reusedSocket === true && hasCode(error, 'ECONNRESET', 'EPIPE') &&
      REPEATABLE.has(this.method) && !head.chunked && head.contentLength === 0
  }

  #sendBody (outgoing: ClientRequest): void {
    const { exchange, request } = this.#options
    const pump = new Pump(request, outgoing, exchange.vm.exchanges)
    outgoing.flushHeaders()
    request.on('data', (chunk: Buffer) => {
      exchange.bytesIn += chunk.length
      pump.send(chunk)
    })
    request.on('end', () => {
      pump.flush()
      if (request.rawTrailers.length > 0) outgoing.addTrailers(pairsOf(request.rawTrailers))
      outgoing.end()
    })
  }

  #sendAnswer (incoming: IncomingMessage, length: number | undefined): void {
    const { exchange, response, services } = this.#options
    let started = false
    let pump: Pump | undefined
    let left = length ?? Number.POSITIVE_INFINITY
    incoming.on('data', (chunk: Buffer) => {
      started = true
      exchange.bytesOut += chunk.length
      left -= chunk.length
      if (left === 0) {
        // Header and last bytes leave together, and often they are all there is.
        this.#complete = true
        pump?.flush()
        response.end(chunk)
      } else {
        pump ??= new Pump(incoming, response, exchange.vm.exchanges)
        pump.send(chunk)
      }
    })
    incoming.on('end', () => {
      if (this.#complete || !incoming.complete) return
      this.#complete = true
      pump?.flush()
      if (incoming.rawTrailers.length > 0) response.addTrailers(pairsOf(filterHeaders(incoming.rawTrailers, this.#rules, services.counters).raw))
      response.end()
    })
    // A stream whose first event is far away has a header that the guest waits for.
    setImmediate(() => { if (!started && !this.#complete && !this.#ended) response.flushHeaders() })
  }

  /** Ends both sides for a reason of our own, with an answer when there was none yet. */
  abort (code: ReasonCode): void {
    if (this.#ended) return
    const { exchange, response } = this.#options
    this.#ended = true
    this.#outgoing?.destroy()
    if (!this.#answered && exchange.status === undefined) refuse(response, code)
    else response.destroy()
    this.#finish(code)
  }

  /** The response is over: it was sent, or the guest is gone. */
  #closed (): void {
    if (this.#complete && this.#options.response.writableFinished) return this.#finish()
    if (this.#ended) return
    this.#ended = true
    this.#outgoing?.destroy()
    this.#finish('guest_closed')
  }

  #finish (code?: ReasonCode): void {
    const { exchange, response } = this.#options
    if (exchange.finished) return
    exchange.status ??= response.headersSent ? response.statusCode : undefined
    this.origin.active--
    this.origin.usedMs = performance.now()
    exchange.finish(code)
  }
}
