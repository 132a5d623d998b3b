// The sending half of a link: gathers frames into few writes, holds them back before the sync, and lets senders of bulk data take turns.
import type { Duplex } from 'node:stream'
import { encodeHeader, FrameType } from './frames.ts'
import { MAX_UNREAD_BYTES } from './limits.ts'

/** bulk data waits while this much is unwritten */
const BUSY_BYTES = 131_072

/** A sender of bulk data; `pump` is called when it may send again, one turn at a time. */
export interface Sender { pump (): void }

export class Outbox {
  readonly #stream: Duplex
  readonly #fail: (reason: string) => void
  readonly #waiting = new Set<Sender>()
  #held: Buffer[] | undefined = []
  #heldBytes = 0
  #busy = false
  #corked = false
  #closed = false

  constructor (stream: Duplex, fail: (reason: string) => void) {
    this.#stream = stream
    this.#fail = fail
  }

  /** Whether bulk data may be sent now. */
  get ready (): boolean { return !this.#busy && this.#held === undefined && !this.#closed }

  /** Whether everything that was sent has been written. */
  get drained (): boolean { return this.#stream.writableLength === 0 }

  /** Calls `sender.pump` once, when bulk data may be sent. */
  wait (sender: Sender): void { this.#waiting.add(sender) }
  forget (sender: Sender): void { this.#waiting.delete(sender) }

  /** A small frame; it does not wait for its turn. */
  send (frame: Buffer): void {
    if (this.#closed) return
    if (this.#held === undefined) return this.#write(frame)
    this.#held.push(frame)
    this.#heldBytes += frame.length
    if (this.#heldBytes > MAX_UNREAD_BYTES) this.#fail('too much waits for the guest to answer')
  }

  sendData (channel: number, stream: number, piece: Buffer): void {
    this.#write(encodeHeader(FrameType.data, channel, stream, piece.length))
    this.#write(piece)
  }

  /** Sends despite the hold: only for the sync itself. */
  sendRaw (bytes: Buffer): void { if (!this.#closed) this.#write(bytes) }

  /** Sends the held frames; from now on frames are sent at once. */
  release (): void {
    const held = this.#held ?? []
    this.#held = undefined
    this.#heldBytes = 0
    for (const frame of held) this.#write(frame)
    this.#takeTurns()
  }

  /** Must be called on the stream's `drain`. */
  drain (): void {
    this.#busy = false
    this.#takeTurns()
  }

  close (): void {
    this.#closed = true
    this.#held = undefined
    this.#waiting.clear()
  }

  #takeTurns (): void {
    for (const sender of this.#waiting) {
      if (!this.ready) return
      this.#waiting.delete(sender)
      sender.pump()
    }
  }

  #write (bytes: Buffer): void {
    if (!this.#corked) {
      this.#corked = true
      this.#stream.cork()
      process.nextTick(() => {
        this.#corked = false
        this.#stream.uncork()
      })
    }
    if (!this.#stream.write(bytes) && this.#stream.writableLength >= BUSY_BYTES) this.#busy = true
    if (this.#stream.writableLength > MAX_UNREAD_BYTES) this.#fail('the guest does not read what it is sent')
  }
}
