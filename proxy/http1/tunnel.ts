// One WebSocket: the handshake through the same gate and with the same header as a request, then bytes in both directions, unread.
import type { ClientRequest, IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Refusal, type ReasonCode } from '../gate/reasons.ts'
import { hasCode } from '../log/error-code.ts'
import { NO_RULES, type HostRules } from '../policy/host-rules.ts'
import { filterHeaders } from '../response/headers.ts'
import type { Origin } from '../upstream/origin.ts'
import type { UpgradeCall, Upstream } from '../upstream/upstream.ts'
import type { Exchange, ExchangeOwner } from '../vms/exchange.ts'
import type { Services } from '../vms/services.ts'
import { refuseOnSocket, responseOn } from './refuse.ts'
import type { RequestHead } from './request-head.ts'
import { writeRequestHeaders } from './request-headers.ts'

export interface TunnelOptions {
  readonly exchange: Exchange
  readonly request: IncomingMessage
  readonly socket: Duplex
  /** what the guest sent behind its header */
  readonly rest: Buffer
  readonly head: RequestHead
  readonly origin: Origin
  readonly services: Services
  readonly upstream: Upstream
}

export class Tunnel implements UpgradeCall, ExchangeOwner {
  readonly origin: Origin
  readonly path: string
  readonly request: IncomingMessage
  readonly socket: Duplex
  readonly head: Buffer
  readonly #options: TunnelOptions
  #outgoing: ClientRequest | undefined
  #far: Duplex | undefined
  #rules: HostRules = NO_RULES
  #ended = false
  /** what the guest had sent before the tunnel */
  #bytesBefore = 0

  constructor (options: TunnelOptions) {
    this.#options = options
    this.origin = options.origin
    this.path = options.exchange.subject.path
    this.request = options.request
    this.socket = options.socket
    this.head = options.rest
  }

  start (): void {
    const { exchange, upstream } = this.#options
    this.origin.active++
    exchange.owner = this
    this.socket.on('close', () => this.#closed('guest_closed'))
    upstream.upgrade(this)
  }

  wanted (): boolean {
    return !this.#ended
  }

  prepare (outgoing: ClientRequest): void {
    const { exchange, request, head } = this.#options
    const policy = exchange.vm.policy
    const rules = exchange.subject.secure ? policy.rulesFor(exchange.subject.host) : NO_RULES
    this.#outgoing = outgoing
    if (rules.unavailable) return this.abort('secret_unavailable')
    try {
      writeRequestHeaders(outgoing, request.rawHeaders, head, rules, exchange.subject.host)
    } catch (error) {
      if (hasCode(error, 'ERR_INVALID_CHAR', 'ERR_INVALID_HTTP_TOKEN')) return this.abort('bad_request')
      throw error
    }
    outgoing.setHeader('Connection', 'Upgrade')
    outgoing.setHeader('Upgrade', 'websocket')
    exchange.policy = policy
    exchange.injectedBy = rules
    this.#rules = rules
  }

  /** http-proxy writes the header that it finds in the response when this returns, and then connects both sides. */
  upgraded (response: IncomingMessage, far: Duplex): void {
    const { exchange, services } = this.#options
    const { raw } = filterHeaders(response.rawHeaders, this.#rules, services.counters)
    response.headers = headersOf(raw)
    exchange.status = 101
    this.#far = far
    this.#bytesBefore = this.socket instanceof Socket ? this.socket.bytesRead : 0
    far.on('error', () => far.destroy())
    far.on('close', () => this.#closed(undefined))
  }

  answered (response: IncomingMessage): void {
    const { exchange, request, services } = this.#options
    const { raw } = filterHeaders(response.rawHeaders, this.#rules, services.counters)
    const status = response.statusCode ?? 502
    exchange.status = status
    const answer = responseOn(request, this.socket)
    answer.sendDate = false
    answer.writeHead(status, response.statusMessage, [...raw, 'Connection', 'close'])
    response.on('data', (chunk: Buffer) => { exchange.bytesOut += chunk.length })
    response.on('error', () => this.abort('upstream_failed'))
    response.pipe(answer)
    answer.once('finish', () => this.#finish(undefined))
  }

  measure (): number {
    const { exchange } = this.#options
    if (this.#far instanceof Socket && this.socket instanceof Socket) {
      exchange.bytesIn = this.socket.bytesRead - this.#bytesBefore
      exchange.bytesOut = this.#far.bytesRead
    }
    return exchange.bytesIn + exchange.bytesOut
  }

  failed (error: unknown): void {
    this.abort(error instanceof Refusal ? error.code : 'upstream_failed')
  }

  abort (code: ReasonCode): void {
    if (this.#ended) return
    this.#ended = true
    this.#outgoing?.destroy()
    this.#far?.destroy()
    if (this.#options.exchange.status === undefined) refuseOnSocket(this.request, this.socket, code)
    else this.socket.destroy()
    this.#finish(code)
  }

  /** One side is gone: what it sent is still delivered, then the other goes too. */
  #closed (code: ReasonCode | undefined): void {
    this.#ended = true
    for (const socket of [this.socket, this.#far]) if (socket instanceof Socket) socket.destroySoon()
    if (this.#far === undefined) this.#outgoing?.destroy()
    this.#finish(this.#options.exchange.status === undefined ? code : undefined)
  }

  #finish (code: ReasonCode | undefined): void {
    const { exchange } = this.#options
    if (exchange.finished) return
    this.measure()
    this.origin.active--
    this.origin.usedMs = performance.now()
    exchange.finish(code)
  }
}

/** As http-proxy reads them: one value, or a list of the values of lines of one name. */
function headersOf (raw: readonly string[]): Record<string, string | string[]> {
  const headers = new Map<string, string[]>([['connection', ['Upgrade']], ['upgrade', ['websocket']]])
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] ?? ''
    headers.set(name, [...headers.get(name) ?? [], raw[index + 1] ?? ''])
  }
  return Object.fromEntries([...headers].map(([name, values]) => [name, values.length === 1 ? values[0] ?? '' : values]))
}
