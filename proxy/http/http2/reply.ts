// The guest's side of one HTTP/2 stream: answers, bodies with back-pressure, trailers and resets.
import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import type { Readable } from 'node:stream'
import { REASONS, type ReasonCode } from '../../contract/reasons.ts'
import { refusalBody } from '../http1/refuse.ts'
import { isFinalStatus } from '../../gate/status.ts'
import { filterHeaders, filterTrailers } from '../../gate/answer-fields.ts'
import type { Origin } from '../../upstream/origin.ts'
import { BadAnswer } from '../../gate/bad-answer.ts'
import { Pump, type PumpSource } from '../pump.ts'
import type { Exchange, ExchangeOwner } from '../../vms/exchange.ts'
import type { Services } from '../../vms/services.ts'
import { toObject } from './headers.ts'

/** The request on its way to the origin. */
export interface FarSide {
  /** Cancels the request; `code` is the HTTP/2 error code. */
  close (code: number): unknown
  /** Another policy is in force. */
  renew? (): void
}

export class Reply implements ExchangeOwner {
  readonly stream: ServerHttp2Stream
  readonly exchange: Exchange
  readonly origin: Origin | undefined
  readonly #services: Services
  /** the origin's side, once there is one */
  far: FarSide | undefined
  #trailers: OutgoingHttpHeaders = {}
  #ended = false

  constructor (stream: ServerHttp2Stream, exchange: Exchange, origin: Origin | undefined, services: Services) {
    this.stream = stream
    this.exchange = exchange
    this.origin = origin
    this.#services = services
    origin?.begin()
    exchange.owner = this
    stream.on('error', exchange.listener(() => stream.close(constants.NGHTTP2_CANCEL)))
    stream.on('aborted', exchange.listener(() => this.#aborted()))
    stream.on('close', exchange.listener(() => this.#closed()))
    stream.on('wantTrailers', exchange.listener(() => this.#sendTrailers()))
  }

  /** Whether nothing can be written any more. */
  get ended (): boolean {
    return this.#ended || this.stream.closed || this.stream.destroyed
  }

  renew (): void {
    this.far?.renew?.()
  }

  /** Answers in place of the origin, or resets the stream when its answer has begun. */
  abort (code: ReasonCode): void {
    if (this.#ended) return
    this.#ended = true
    this.far?.close(constants.NGHTTP2_CANCEL)
    // A stream that is closed may still wait for a guest that reads nothing.
    if (this.stream.closed) this.stream.destroy()
    else if (this.stream.headersSent) this.stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    else this.#refuse(code)
    this.#finish(code)
  }

  #refuse (code: ReasonCode): void {
    const { status } = REASONS[code]
    this.exchange.status = status
    const endStream = this.exchange.subject.method === 'HEAD'
    this.stream.respond({ ':status': status, 'content-type': 'application/json' }, { endStream })
    // The body of the request, if any, is not read.
    if (endStream) this.stream.close(constants.NGHTTP2_NO_ERROR)
    else this.stream.end(refusalBody(code), () => this.stream.close(constants.NGHTTP2_NO_ERROR))
  }

  /** Resets the stream as the origin reset its own. */
  reset (code: number): void {
    if (this.#ended) return
    this.#ended = true
    this.far?.close(constants.NGHTTP2_CANCEL)
    this.stream.close(code)
    this.#finish('upstream_failed')
  }

  /** The answer is complete, and its origin reads no more of the request: its guest need not send the rest (RFC 9113, 8.1). */
  conclude (): void {
    if (this.ended) return
    // Node sends this behind what is still to be written.
    this.stream.close(constants.NGHTTP2_NO_ERROR)
    // Unread bytes would keep the stream alive.
    this.stream.resume()
  }

  /** Sends the header of the answer. Throws a BadAnswer when it is invalid. */
  respond (status: number, raw: readonly string[], endStream: boolean): void {
    if (!isFinalStatus(status)) throw new BadAnswer('the status is not that of an answer')
    const headers = toObject(filterHeaders(raw, this.exchange.rules, this.#services.counters, status).raw)
    if (headers === undefined) throw new BadAnswer('a field is not a name and a value')
    this.exchange.answered(status)
    this.stream.respond({ ...headers, ':status': status }, { endStream, waitForTrailers: !endStream })
  }

  /** Passes an origin's body on, no faster than the guest reads it. @param trailers once its stream has ended; undefined: that was not the end of the body, and nothing may look as if it were */
  send (source: Readable, trailers: () => readonly string[] | undefined): void {
    const pump = this.receive(source)
    source.on('data', this.exchange.listener((chunk: Buffer) => {
      this.exchange.bytesOut += chunk.length
      pump.send(chunk)
    }))
    source.on('end', this.exchange.listener(() => {
      const last = trailers()
      if (last !== undefined) this.end(pump, last)
    }))
  }

  /** The pump for the pieces of an answer's body; `end` is called after the last. */
  receive (source: PumpSource): Pump {
    return new Pump(source, this.stream, this.exchange)
  }

  /** The answer is complete. Throws a BadAnswer when its trailers are invalid. */
  end (pump: Pump, trailers: readonly string[]): void {
    const headers = toObject(filterTrailers(trailers, this.exchange.rules, this.#services.counters))
    if (headers === undefined) throw new BadAnswer('a trailer is not a name and a value')
    pump.flush()
    this.#trailers = headers
    this.stream.end()
  }

  #sendTrailers (): void {
    if (!this.stream.closed && !this.stream.destroyed) this.stream.sendTrailers(this.#trailers)
  }

  /** The guest cancels its request before the answer is complete. Whatever the code, nobody reads any more. */
  #aborted (): void {
    if (this.#ended) return
    this.#ended = true
    this.far?.close(this.stream.rstCode === constants.NGHTTP2_NO_ERROR ? constants.NGHTTP2_CANCEL : this.stream.rstCode)
    this.#finish('guest_closed')
    // Unread bytes of the guest would keep the stream alive. Destroyed later, since Node is still working on it now.
    process.nextTick(() => this.stream.destroy())
  }

  #closed (): void {
    if (this.exchange.finished) return
    this.#ended = true
    const { rstCode, writableFinished } = this.stream
    this.far?.close(rstCode === constants.NGHTTP2_NO_ERROR ? constants.NGHTTP2_CANCEL : rstCode)
    this.#finish(rstCode === constants.NGHTTP2_NO_ERROR && writableFinished ? undefined : 'guest_closed')
  }

  #finish (code: ReasonCode | undefined): void {
    if (this.exchange.finished) return
    this.origin?.done()
    this.exchange.finish(code)
  }
}
