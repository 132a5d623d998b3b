// The start of a conversation: sends the sync, finds its answer among the bytes that the guest was sending, and repeats the sync when there is no answer.
import { randomBytes } from 'node:crypto'
import { MAX_BYTES_BEFORE_SYNC } from './limits.ts'
import type { Outbox } from './outbox.ts'
import { ProtocolViolation } from './violation.ts'

const MAGIC = Buffer.from([0xb7, 0x42, 0x45, 0x52, 0x54, 0x48, 0x31, 0x0a])
const NONCE_BYTES = 16
const SYNC_BYTES = MAGIC.length + NONCE_BYTES
/** ends any frame that the guest may be in the middle of, as the protocol fixes it */
const RESYNC_ZERO_BYTES = 66_000
const FIRST_RESYNC_MS = 500
const LONGEST_RESYNC_MS = 8000

export class Handshake {
  readonly #outbox: Outbox
  #sync = Buffer.alloc(0)
  #tail: Buffer = Buffer.alloc(0)
  #dropped = 0
  #delayMs = FIRST_RESYNC_MS
  #timer: NodeJS.Timeout | undefined
  #mayResync = true

  constructor (outbox: Outbox) { this.#outbox = outbox }

  start (): void {
    this.#ask()
    this.#schedule()
  }

  /**
   * From now on the guest may have acted on what followed the sync, so the sync must not be repeated: it would end
   * the request, and a repeated request could be done twice.
   */
  commit (): void {
    this.#mayResync = false
    this.stop()
  }

  stop (): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Returns what follows the answer in `chunk`, or `undefined` when the answer has not come yet. */
  push (chunk: Buffer): Buffer | undefined {
    const bytes = this.#tail.length === 0 ? chunk : Buffer.concat([this.#tail, chunk])
    const at = bytes.indexOf(this.#sync)
    if (at >= 0) {
      this.stop()
      this.#tail = Buffer.alloc(0)
      return bytes.subarray(at + SYNC_BYTES)
    }
    this.#dropped += chunk.length
    if (this.#dropped > MAX_BYTES_BEFORE_SYNC) throw new ProtocolViolation(`sent ${MAX_BYTES_BEFORE_SYNC} bytes without answering the sync`)
    this.#tail = Buffer.from(bytes.subarray(Math.max(0, bytes.length - SYNC_BYTES + 1)))
    return undefined
  }

  #ask (): void {
    this.#sync = Buffer.concat([MAGIC, randomBytes(NONCE_BYTES)])
    this.#outbox.sendRaw(this.#sync)
  }

  #schedule (): void {
    if (!this.#mayResync) return
    this.#timer = setTimeout(() => {
      this.#delayMs = Math.min(this.#delayMs * 2, LONGEST_RESYNC_MS)
      // While the last sync is unread the guest is not up yet, and another one would only pile up.
      if (this.#outbox.drained) {
        this.#outbox.sendRaw(Buffer.alloc(RESYNC_ZERO_BYTES))
        this.#ask()
      }
      this.#schedule()
    }, this.#delayMs)
    this.#timer.unref()
  }
}
