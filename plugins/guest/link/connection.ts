// A connection of a program in the guest, as one stream: both halves of its channel, and the channel's end.
import { Duplex } from 'node:stream'
import type { Channel } from './channel.ts'

const OUTPUT = 1

export class GuestConnection extends Duplex {
  readonly #channel: Channel<void>
  #over = false

  constructor (channel: Channel<void>) {
    super({ allowHalfOpen: true, highWaterMark: 65_536 })
    this.#channel = channel
    // Nobody may be listening for errors at this moment; an error must not end the server.
    this.on('error', () => {})
    const output = channel.output(OUTPUT)
    output.on('data', (piece: Buffer) => { if (!this.push(piece)) output.pause() })
    // A connection that was cut off must not look complete: its result is an error, which ends this stream.
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

  /** Whether both sides have ended, so that the guest ends the channel by itself. */
  #isWhole (): boolean {
    return this.#over || (this.writableFinished && this.#channel.output(OUTPUT).endedByGuest)
  }
}
