// Passes a body on in pieces of a good size. TLS delivers it in records of 16 KiB, and writing each by itself would cost a system call and two
// callbacks every time. So several records are written together, from buffers that are used again: Node itself would join waiting records in
// new memory each time, and the kernel clears every page of new memory. Small pieces are sent at once: events of a stream must not wait for each other.

/** smaller pieces are not part of a bulk transfer */
const SMALL_BYTES = 4 * 1024
/** how many small pieces are written one by one, and how many are read, in one turn of the event loop */
const SMALL_ALONE = 16
const SMALL_AT_ONCE = 1_024
const BATCH_BYTES = 64 * 1024
/** gathered bytes up to this size are copied once more, so that no small piece keeps a large buffer */
const PART_BYTES = BATCH_BYTES / 4
/**
 * How much may wait for a slow reader before its source is paused. The wide bound makes a single stream a tenth faster, since it is paused less often. A guest that runs
 * more than a few requests gets the narrow one, since a body of each request may be waiting, and the guest need not read any of them.
 */
const WIDE_BYTES = 512 * 1024
const NARROW_BYTES = 128 * 1024
const FEW_REQUESTS = 8

/** The exchange that a body belongs to. */
export interface PumpOwner {
  /** number of running requests of the same guest, this one included */
  readonly requests: number
  /** Is called with an exception of a callback. */
  fault (error: unknown): void
}

/** The source of a body. */
export interface PumpSource {
  pause (): unknown
  resume (): unknown
  isPaused (): boolean
}

/** The target of a body. */
export interface PumpTarget {
  write (chunk: Buffer, done?: (error?: Error | null) => void): unknown
  once (event: 'drain', listener: () => void): unknown
  readonly writableLength: number
  readonly writableNeedDrain: boolean
}

export class Pump {
  readonly #source: PumpSource
  readonly #target: PumpTarget
  readonly #owner: PumpOwner
  readonly #spare: Buffer[] = []
  #batch: Buffer | undefined
  #filled = 0
  /** number of batches that the target has not taken yet */
  #writing = 0
  /** number of small pieces in this turn of the event loop */
  #small = 0

  constructor (source: PumpSource, target: PumpTarget, owner: PumpOwner) {
    this.#source = source
    this.#target = target
    this.#owner = owner
  }

  /** Sends a copy of a piece, now or together with the next ones of this turn of the event loop; pauses the source while the target is slower. */
  send (piece: Buffer): void {
    if (piece.length < SMALL_BYTES) this.#countSmall()
    if (this.#filled === 0 && piece.length < SMALL_BYTES && this.#small <= SMALL_ALONE) this.#target.write(Buffer.from(piece))
    else this.#gather(piece)
    if (this.#target.writableLength + this.#filled > (this.#owner.requests > FEW_REQUESTS ? NARROW_BYTES : WIDE_BYTES)) this.#holdBack()
  }

  /** A hundred thousand chunks of one byte can arrive at once: writing each by itself, or reading all of them in one turn, would block the event loop for other VMs. */
  #countSmall (): void {
    this.#small++
    if (this.#small === 1) setImmediate(() => { this.#small = 0 })
    if (this.#small !== SMALL_AT_ONCE || this.#source.isPaused()) return
    this.#source.pause()
    setImmediate(() => this.#run(() => { this.#source.resume() }))
  }

  /** Sends the gathered bytes; must be called before the target is ended. */
  flush (): void {
    const batch = this.#batch
    if (batch === undefined || this.#filled === 0) return
    const part = batch.subarray(0, this.#filled)
    this.#filled = 0
    if (part.length <= PART_BYTES) {
      this.#target.write(Buffer.from(part))
      return
    }
    this.#batch = undefined
    this.#writing++
    this.#target.write(part, error => this.#run(() => this.#written(batch, error)))
  }

  #written (batch: Buffer, error: Error | null | undefined): void {
    this.#writing--
    // A target that failed may still be reading the buffer, so it is not used again.
    if (error) return
    this.#spare.push(batch)
    if (this.#writing === 0) this.flush()
  }

  /** A batch that is not full is sent at the end of this turn, or, better, when the batch before it was written. */
  #gather (piece: Buffer): void {
    for (let at = 0; at < piece.length;) {
      if (this.#filled === 0 && this.#writing === 0) setImmediate(() => this.#run(() => { if (this.#writing === 0) this.flush() }))
      this.#batch ??= this.#spare.pop() ?? Buffer.allocUnsafeSlow(BATCH_BYTES)
      const taken = piece.copy(this.#batch, this.#filled, at)
      this.#filled += taken
      at += taken
      if (this.#filled === BATCH_BYTES) this.flush()
    }
  }

  #holdBack (): void {
    if (this.#writing === 0) this.flush()
    if (!this.#target.writableNeedDrain || this.#source.isPaused()) return
    this.#source.pause()
    this.#target.once('drain', () => this.#run(() => { this.#source.resume() }))
  }

  #run (work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#owner.fault(error)
    }
  }
}
