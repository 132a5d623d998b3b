// Passes a body on in pieces of a good size. TLS hands it over in records of 16 KiB, and writing each by itself would cost a system call and two
// callbacks every time; several go out as one. What is small goes at once: events of a stream must not wait for each other.
import type { Readable, Writable } from 'node:stream'

/** smaller ones are not part of a bulk transfer */
const SMALL_BYTES = 4 * 1024
const BATCH_BYTES = 64 * 1024
/**
 * What may wait for a slow reader before its source is held back. The wide one makes a single stream a tenth faster, for it is held back less often; a guest that runs
 * more than a few requests gets the narrow one, since it can have as many bodies waiting as it may have requests, and need not read any of them.
 */
const WIDE_BYTES = 512 * 1024
const NARROW_BYTES = 128 * 1024
const FEW_REQUESTS = 8

interface Countable { readonly size: number }

export class Pump {
  readonly #source: Readable
  readonly #target: Writable
  readonly #requests: Countable
  #batchBytes = 0

  /** @param requests of the same guest, this one among them */
  constructor (source: Readable, target: Writable, requests: Countable) {
    this.#source = source
    this.#target = target
    this.#requests = requests
  }

  /** Sends a piece, now or with the next ones of this turn of the event loop; holds the source back while the target is slower. */
  send (chunk: Buffer): void {
    if (this.#batchBytes === 0 && chunk.length < SMALL_BYTES) this.#target.write(chunk)
    else this.#gather(chunk)
    if (this.#target.writableLength > (this.#requests.size > FEW_REQUESTS ? NARROW_BYTES : WIDE_BYTES)) this.#holdBack()
  }

  /** Sends what was gathered; to be called before the target is ended. */
  flush (): void {
    if (this.#batchBytes === 0) return
    this.#batchBytes = 0
    this.#target.uncork()
  }

  #gather (chunk: Buffer): void {
    // Corked rather than put together: Node copies the pieces into one anyway, outside of the heap.
    if (this.#batchBytes === 0) {
      this.#target.cork()
      setImmediate(() => this.flush())
    }
    this.#batchBytes += chunk.length
    this.#target.write(chunk)
    if (this.#batchBytes >= BATCH_BYTES) this.flush()
  }

  #holdBack (): void {
    this.flush()
    if (!this.#target.writableNeedDrain || this.#source.isPaused()) return
    this.#source.pause()
    this.#target.once('drain', () => this.#source.resume())
  }
}
