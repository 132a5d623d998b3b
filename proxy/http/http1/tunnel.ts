// One WebSocket: the handshake passes the same gate and has the same header as a request; after it, bytes go in both directions, unread.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { reasonOf, type ReasonCode } from '../../contract/reasons.ts'
import { isFinalStatus } from '../../gate/status.ts'
import { filterHeaders, withoutField } from '../../gate/answer-fields.ts'
import { withoutSecrets } from '../../gate/echo.ts'
import { passUp } from '../pass-up.ts'
import { Pump } from '../pump.ts'
import type { AnswerHead } from '../../upstream/http1/answer-head.ts'
import { BadAnswer } from '../../gate/bad-answer.ts'
import type { OriginCall, OutgoingHead, RequestCarrier } from '../../upstream/http1/call.ts'
import { fieldLines } from '../../upstream/http1/fields.ts'
import type { Origin } from '../../upstream/origin.ts'
import type { Exchange, ExchangeOwner } from '../../vms/exchange.ts'
import type { Services } from '../../vms/services.ts'
import { lengthLast } from './length-last.ts'
import { refuseOnSocket, responseOn } from './refuse.ts'
import type { RequestHead } from './request-head.ts'
import { requestLines } from './request-headers.ts'

export interface TunnelOptions {
  readonly exchange: Exchange
  readonly request: IncomingMessage
  readonly socket: Duplex
  /** bytes that the guest sent behind its header */
  readonly rest: Buffer
  readonly head: RequestHead
  readonly origin: Origin
  readonly services: Services
}

const OFFER = ['Connection', 'Upgrade', 'Upgrade', 'websocket']

export class Tunnel implements OriginCall, ExchangeOwner {
  readonly #options: TunnelOptions
  #connection: RequestCarrier | undefined
  /** where the origin's bytes go: to the guest's connection, or to the answer that came instead of a change of protocols */
  #down: Pump | undefined
  #answer: ServerResponse | undefined
  #ended = false

  constructor (options: TunnelOptions) {
    this.#options = options
  }

  start (): void {
    const { exchange, origin, socket } = this.#options
    origin.begin()
    exchange.owner = this
    socket.on('close', exchange.listener(() => this.#closed()))
    origin.tunnels.request(this)
  }

  head (): OutgoingHead | undefined {
    if (this.#ended) return undefined
    const { exchange, request, head } = this.#options
    const rules = exchange.readPolicy()
    if (rules === undefined) return undefined
    const lines = requestLines(request.rawHeaders, head, rules, exchange.subject.host, exchange.trace)
    if (lines === undefined) {
      this.abort('bad_request')
      return undefined
    }
    return { method: 'GET', path: exchange.subject.path, lines: [...lines, ...OFFER], body: 'tunnel' }
  }

  sending (connection: RequestCarrier): void {
    this.#connection = connection
    this.#options.exchange.headerWritten(connection)
  }

  answered (head: AnswerHead): void {
    const { exchange, services } = this.#options
    if (head.status !== 101 && !isFinalStatus(head.status)) throw new BadAnswer('the status is not that of an answer')
    const { raw } = filterHeaders(head.raw, exchange.rules, services.counters, head.status)
    const reason = withoutSecrets(head.reason, exchange.rules, services.counters)
    exchange.answered(head.status)
    if (head.status === 101) this.#join(reason, raw)
    else this.#pass(head.status, reason, raw)
  }

  waiting (): void {}

  body (view: Buffer): void {
    this.#options.exchange.bytesOut += view.length
    this.#down?.send(view)
  }

  ended (): void {
    const { socket } = this.#options
    this.#down?.flush()
    if (this.#answer !== undefined) this.#answer.end()
    else if (socket instanceof Socket) socket.destroySoon()
    else socket.end()
    this.#connection?.end([])
  }

  failed (error: unknown): void {
    this.abort(reasonOf(error))
  }

  fault (error: unknown): void {
    this.#options.exchange.fault(error)
  }

  abort (code: ReasonCode): void {
    if (this.#ended) return
    const { exchange, request, socket } = this.#options
    this.#ended = true
    if (this.#connection === undefined) this.#options.origin.tunnels.withdraw(this)
    else this.#connection.cancel(this)
    if (exchange.status === undefined) refuseOnSocket(request, socket, code)
    else socket.destroy()
    this.#finish(code)
  }

  /** The protocol changes: from here on bytes are passed on unchanged. */
  #join (reason: string, raw: readonly string[]): void {
    const { exchange, socket, rest } = this.#options
    const connection = this.#connection
    const lines = fieldLines([...raw, ...OFFER])
    if (connection === undefined || lines === undefined) return this.abort('upstream_failed')
    socket.write(`HTTP/1.1 101 ${reason}\r\n${lines}\r\n`, 'latin1')
    this.#down = new Pump(connection, socket, exchange)
    exchange.bytesIn += rest.length
    connection.write(rest)
    passUp(exchange, socket, connection, () => connection.end([]))
  }

  /** The origin refuses the change of protocols: its answer is passed on. */
  #pass (status: number, reason: string, raw: readonly string[]): void {
    const { exchange, request, socket } = this.#options
    const answer = responseOn(request, socket)
    this.#answer = answer
    answer.sendDate = false
    // Node frames this answer itself, and sends no trailers.
    answer.writeHead(status, reason, [...lengthLast(withoutField(raw, 'trailer')), ...status === 205 ? ['Content-Length', '0'] : [], 'Connection', 'close'])
    answer.once('finish', exchange.listener(() => this.#finish(undefined)))
    // A 205 has no body: one that an origin sends nevertheless is not passed on.
    if (status === 205) answer.end()
    else if (this.#connection !== undefined) this.#down = new Pump(this.#connection, answer, exchange)
  }

  /** The guest's side has closed: what it sent is still delivered. */
  #closed (): void {
    this.#ended = true
    if (this.#connection === undefined) this.#options.origin.tunnels.withdraw(this)
    else this.#connection.leave(this)
    this.#finish(this.#options.exchange.status === undefined ? 'guest_closed' : undefined)
  }

  #finish (code: ReasonCode | undefined): void {
    const { exchange, origin } = this.#options
    if (exchange.finished) return
    origin.done()
    exchange.finish(code)
  }
}
