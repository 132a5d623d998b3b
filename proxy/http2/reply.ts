// The guest's side of one HTTP/2 stream: answers, bodies with back-pressure, trailers and resets.
import { constants, type ServerHttp2Stream } from 'node:http2'
import type { Readable } from 'node:stream'
import { REASONS, type ReasonCode } from '../gate/reasons.ts'
import { refusalBody } from '../http1/refuse.ts'
import { filterHeaders } from '../response/headers.ts'
import type { Origin } from '../upstream/origin.ts'
import { Pump, type PumpSource } from '../streams/pump.ts'
import type { Exchange, ExchangeOwner } from '../vms/exchange.ts'
import type { Services } from '../vms/services.ts'
import { toObject } from './headers.ts'

/** The request on its way to the origin. */
export interface FarSide {
  /** Takes it back; `code` says why in the words of HTTP/2. */
  close (code: number): unknown
}

export class Reply implements ExchangeOwner {
  readonly stream: ServerHttp2Stream
  readonly exchange: Exchange
  readonly origin: Origin | undefined
  readonly #services: Services
  /** the origin's side, once there is one */
  far: FarSide | undefined
  #trailers: readonly string[] = []
  #ended = false

  constructor (stream: ServerHttp2Stream, exchange: Exchange, origin: Origin | undefined, services: Services) {
    this.stream = stream
    this.exchange = exchange
    this.origin = origin
    this.#services = services
    origin?.begin()
    exchange.owner = this
    stream.on('error', () => stream.close(constants.NGHTTP2_CANCEL))
    stream.on('close', () => this.#closed())
    stream.on('wantTrailers', () => this.#sendTrailers())
  }

  get ended (): boolean {
    return this.#ended || this.stream.destroyed
  }

  /** Answers in place of the origin, or resets the stream when its answer has begun. */
  abort (code: ReasonCode): void {
    if (this.#ended) return
    this.#ended = true
    this.far?.close(constants.NGHTTP2_CANCEL)
    if (this.stream.headersSent || this.stream.destroyed) {
      this.stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    } else {
      this.exchange.status = REASONS[code].status
      this.stream.respond({ ':status': REASONS[code].status, 'content-type': 'application/json' })
      // The body of the request, if there is one, is not read.
      this.stream.end(refusalBody(code), () => this.stream.close(constants.NGHTTP2_NO_ERROR))
    }
    this.#finish(code)
  }

  /** Resets the stream as the origin reset its own. */
  reset (code: number): void {
    if (this.#ended) return
    this.#ended = true
    this.stream.close(code)
    this.#finish('upstream_failed')
  }

  respond (status: number, raw: readonly string[], endStream: boolean): void {
    const { raw: lines } = filterHeaders(raw.filter((_, index) => raw[index - index % 2]?.startsWith(':') !== true), this.exchange.rules, this.#services.counters)
    this.exchange.status = status
    this.stream.respond({ ...toObject(lines), ':status': status }, { endStream, waitForTrailers: !endStream })
  }

  /** Passes an origin's body on, no faster than the guest takes it. */
  send (source: Readable, trailers: () => readonly string[]): void {
    const pump = this.receive(source)
    source.on('data', (chunk: Buffer) => {
      this.exchange.bytesOut += chunk.length
      pump.send(chunk)
    })
    source.on('end', () => this.end(pump, trailers()))
  }

  /** What the pieces of an answer's body go through; `end` comes after the last. */
  receive (source: PumpSource): Pump {
    return new Pump(source, this.stream, this.exchange.vm.exchanges)
  }

  /** The answer is whole. */
  end (pump: Pump, trailers: readonly string[]): void {
    pump.flush()
    this.#trailers = trailers
    this.stream.end()
  }

  #sendTrailers (): void {
    const { raw } = filterHeaders(this.#trailers, this.exchange.rules, this.#services.counters)
    this.stream.sendTrailers(toObject(raw))
  }

  #closed (): void {
    if (this.exchange.finished) return
    this.#ended = true
    const { rstCode } = this.stream
    if (rstCode !== constants.NGHTTP2_NO_ERROR) this.far?.close(rstCode)
    this.#finish(rstCode === constants.NGHTTP2_NO_ERROR && this.stream.writableFinished ? undefined : 'guest_closed')
  }

  #finish (code: ReasonCode | undefined): void {
    if (this.exchange.finished) return
    this.origin?.done()
    this.exchange.finish(code)
  }
}
