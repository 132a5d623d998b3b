// One stream from the guest as a Readable: accepts no more than was granted, and grants only as fast as its reader reads.
import { Readable } from 'node:stream'
import { ByteQueue } from './byte-queue.ts'
import { INITIAL_CREDIT_BYTES } from './limits.ts'
import { ProtocolViolation } from './violation.ts'

export class ReceiveStream extends Readable {
  readonly #grant: (bytes: number) => void
  readonly #queue = new ByteQueue()
  #allowed = INITIAL_CREDIT_BYTES
  #consumed = 0
  #wanted = false
  #finished = false
  #ended = false
  #endedByGuest = false

  constructor (grant: (bytes: number) => void) {
    super({ highWaterMark: 16_384 })
    this.#grant = grant
    // A reader without an error listener must not end the server; `result` has the failure too.
    this.on('error', () => {})
  }

  accept (piece: Buffer): void {
    if (this.#finished) throw new ProtocolViolation('sent data after the end of its stream')
    this.#allowed -= piece.length
    if (this.#allowed < 0) throw new ProtocolViolation('sent more data than it had credit for')
    if (this.destroyed) return this.#consume(piece.length)
    if (!this.#wanted || !this.#queue.empty) return this.#queue.add(piece)
    this.#hand(piece)
  }

  /** No more data comes. Data that has come can still be read. */
  finish (): void {
    if (this.#finished) return
    this.#finished = true
    this.#end()
  }

  /** Whether the guest has ended the stream, so that nothing is missing. */
  get endedByGuest (): boolean { return this.#endedByGuest }

  /** The guest ends the stream, which it may do once. */
  finishByGuest (): void {
    if (this.#finished) throw new ProtocolViolation('ended a stream twice')
    this.#endedByGuest = true
    this.finish()
  }

  /**
   * Resolves when its reader has all of it. A stream that nobody has begun to read is not waited for: a caller
   * that does not read it would wait for ever.
   */
  async drained (): Promise<void> {
    const unread = this.readableFlowing === null && this.listenerCount('readable') === 0
    if (this.closed || unread) return
    await new Promise<void>((resolve) => { this.once('close', resolve) })
  }

  override _read (): void {
    this.#wanted = true
    while (this.#wanted) {
      const piece = this.#queue.take()
      if (piece === undefined) break
      this.#hand(piece)
    }
    this.#end()
  }

  override _destroy (error: Error | null, callback: (error?: Error | null) => void): void {
    this.#queue.clear()
    // Queued bytes count as read, so that the guest can get to the end of its command.
    if (!this.#finished) this.#consume(INITIAL_CREDIT_BYTES - this.#allowed - this.#consumed)
    callback(error)
  }

  #hand (piece: Buffer): void {
    // Before push: a reader that reads on at once needs correct counters.
    this.#wanted = false
    const wanted = this.push(piece)
    this.#wanted = wanted || this.#wanted
    this.#consume(piece.length)
  }

  /** Grants half a window at a time: this takes fewer frames, and with a fast reader the guest always has credit. */
  #consume (bytes: number): void {
    this.#consumed += bytes
    if (this.#finished || this.#consumed < INITIAL_CREDIT_BYTES / 2) return
    this.#allowed += this.#consumed
    this.#grant(this.#consumed)
    this.#consumed = 0
  }

  #end (): void {
    if (!this.#finished || this.#ended || !this.#queue.empty || this.destroyed) return
    this.#ended = true
    this.push(null)
  }
}
