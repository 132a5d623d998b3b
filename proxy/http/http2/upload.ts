// A guest's body on its way to an origin that speaks HTTP/2. Its beginning is kept until the origin answers, so that a request that the origin has not processed can be sent again.
import type { ClientHttp2Stream, ServerHttp2Stream } from 'node:http2'
import type { Exchange } from '../../vms/exchange.ts'
import { Pump } from '../pump.ts'

/** As much as the guest may have under way on a stream, anyway; a call of gRPC is smaller. */
const MOST_KEPT_BYTES = 64 * 1024
const FIRST_KEPT_BYTES = 1024

export class Upload {
  readonly #guest: ServerHttp2Stream
  readonly #exchange: Exchange
  /** A copy: a piece of the guest's may be one byte of a large buffer. Undefined: not all is there that has come, or nobody needs it any more. */
  #kept: Buffer | undefined = Buffer.alloc(0)
  #keptBytes = 0
  #target: ClientHttp2Stream | undefined
  #pump: Pump | undefined
  #begun = false
  #ended = false
  trailers: readonly string[] = []

  constructor (guest: ServerHttp2Stream, exchange: Exchange) {
    this.#guest = guest
    this.#exchange = exchange
  }

  /** whether some of it may be taken from the guest already */
  get begun (): boolean { return this.#begun }

  /** whether the guest still has to send some of it */
  get isUnfinished (): boolean { return this.#begun && !this.#ended }

  /** whether all of it can be sent once more */
  get isRepeatable (): boolean { return this.#kept !== undefined }

  /** Sends the whole body, no faster than the target takes it, and ends the target with it. */
  sendTo (target: ClientHttp2Stream): void {
    this.#target = target
    this.#pump = new Pump(this.#guest, target, this.#exchange)
    if (!this.#begun) return this.#begin()
    if (this.#kept !== undefined && this.#keptBytes > 0) this.#pump.send(this.#kept.subarray(0, this.#keptBytes))
    if (this.#ended) this.#end()
    else this.#guest.resume()
  }

  /** The target is gone, and there will be another one. What comes meanwhile is kept as well: a guest that is not read would not be noticed when it gives up. */
  hold (): void {
    this.#target = undefined
    this.#pump = undefined
  }

  /** It will not be sent again. */
  forget (): void {
    this.#kept = undefined
  }

  #begin (): void {
    this.#begun = true
    const guest = this.#guest
    guest.on('trailers', (_headers, _flags, raw: string[] = []) => { this.trailers = raw })
    guest.on('data', this.#exchange.listener((chunk: Buffer) => {
      this.#exchange.bytesIn += chunk.length
      this.#keep(chunk)
      this.#pump?.send(chunk)
    }))
    guest.on('end', this.#exchange.listener(() => {
      this.#ended = true
      this.#end()
    }))
  }

  #end (): void {
    this.#pump?.flush()
    this.#target?.end()
  }

  #keep (chunk: Buffer): void {
    if (this.#kept === undefined) return
    const bytes = this.#keptBytes + chunk.length
    if (bytes > MOST_KEPT_BYTES) return this.forget()
    if (bytes > this.#kept.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(MOST_KEPT_BYTES, Math.max(FIRST_KEPT_BYTES, 2 * bytes)))
      this.#kept.copy(larger, 0, 0, this.#keptBytes)
      this.#kept = larger
    }
    chunk.copy(this.#kept, this.#keptBytes)
    this.#keptBytes = bytes
  }
}
