// A connection that a program in the guest has made, as one stream: both halves of its channel, and the channel's end.
import { Duplex } from 'node:stream'
import type { Channel } from './channel.ts'

const OUTPUT = 1

export class GuestConnection extends Duplex {
  readonly #channel: Channel<void>
  #over = false

  constructor (channel: Channel<void>) {
    super({ allowHalfOpen: true, highWaterMark: 65_536 })
    this.#channel = channel
    // Whoever serves it may not be listening for errors at this moment; that must not take the server down.
    this.on('error', () => {})
    const output = channel.output(OUTPUT)
    output.on('data', (piece: Buffer) => { if (!this.push(piece)) output.pause() })
    // What is cut off must not look like what came to its end: then the result is an error, and ends this.
    output.on('end', () => { if (output.endedByGuest) this.push(null) })
    output.pause()
    channel.result.then(() => { this.#over = true }, (error: unknown) => {
      this.#over = true
      this.destroy(error instanceof Error ? error : undefined)
    })
  }

  override _read (): void { this.#channel.output(OUTPUT).resume() }

  override _write (chunk: Buffer, _encoding: string, callback: (error?: Error | null) => void): void {
    this.#channel.input.write(chunk, callback)
  }

  override _final (callback: (error?: Error | null) => void): void {
    this.#channel.input.end(callback)
  }

  override _destroy (error: Error | null, callback: (error?: Error | null) => void): void {
    if (!this.#isWhole()) this.#channel.control({ op: 'cancel' })
    this.#channel.output(OUTPUT).destroy()
    this.#channel.input.destroy()
    callback(error)
  }

  /** Whether both sides have said all, so that the guest ends it by itself. */
  #isWhole (): boolean {
    return this.#over || (this.writableFinished && this.#channel.output(OUTPUT).endedByGuest)
  }
}
