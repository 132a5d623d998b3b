// One stream to the guest as a Writable: sends only what the guest has granted and the connection takes.
import { Writable } from 'node:stream'
import { encodeFrame, FrameType } from './frames.ts'
import { INITIAL_CREDIT_BYTES, MAX_CREDIT_BYTES, MAX_PAYLOAD_BYTES } from './limits.ts'
import type { Outbox, Sender } from './outbox.ts'
import { ProtocolViolation } from './violation.ts'

const STREAM = 0

export class SendStream extends Writable implements Sender {
  readonly #channel: number
  readonly #outbox: Outbox
  #credit = INITIAL_CREDIT_BYTES
  #rest: Buffer | undefined
  #written: ((error?: Error | null) => void) | undefined
  /** the guest takes no more; further data is dropped, as for a program that does not read its input */
  #discarding = false

  constructor (channel: number, outbox: Outbox) {
    super({ highWaterMark: MAX_PAYLOAD_BYTES, decodeStrings: true })
    this.#channel = channel
    this.#outbox = outbox
    // A writer without an error listener must not end the server; `result` has the failure too.
    this.on('error', () => {})
  }

  credit (bytes: number): void {
    this.#credit += bytes
    if (this.#credit > MAX_CREDIT_BYTES) throw new ProtocolViolation('granted an impossible amount of credit')
    this.pump()
  }

  discard (): void {
    this.#discarding = true
    this.pump()
  }

  override _write (chunk: Buffer, _encoding: string, callback: (error?: Error | null) => void): void {
    this.#rest = chunk
    this.#written = callback
    this.pump()
  }

  override _final (callback: (error?: Error | null) => void): void {
    if (!this.#discarding) this.#outbox.send(encodeFrame(FrameType.eof, this.#channel, STREAM, Buffer.alloc(0)))
    callback()
  }

  override _destroy (error: Error | null, callback: (error?: Error | null) => void): void {
    this.#outbox.forget(this)
    this.#rest = undefined
    this.#written = undefined
    callback(error)
  }

  pump (): void {
    while (this.#rest !== undefined && this.#rest.length > 0 && !this.#discarding) {
      if (this.#credit === 0) return
      if (!this.#outbox.ready) return this.#outbox.wait(this)
      const size = Math.min(this.#rest.length, this.#credit, MAX_PAYLOAD_BYTES)
      this.#outbox.sendData(this.#channel, STREAM, this.#rest.subarray(0, size))
      this.#credit -= size
      this.#rest = this.#rest.subarray(size)
    }
    const written = this.#written
    this.#rest = undefined
    this.#written = undefined
    written?.()
  }
}
