// Passes a body on in pieces of a good size. TLS hands it over in records of 16 KiB, and writing each by itself would cost a system call and two
// callbacks every time; several go out as one, put together here in buffers that are used again: left to itself, Node puts what waits together in
// new memory each time, and the kernel clears every page of it. What is small goes at once: events of a stream must not wait for each other.

/** smaller ones are not part of a bulk transfer */
const SMALL_BYTES = 4 * 1024
/** how many of them go by themselves, and how many are taken, in one turn of the event loop */
const SMALL_ALONE = 16
const SMALL_AT_ONCE = 1_024
const BATCH_BYTES = 64 * 1024
/** what is gathered up to here is copied once more, so that no small piece keeps a large buffer */
const PART_BYTES = BATCH_BYTES / 4
/**
 * What may wait for a slow reader before its source is held back. The wide one makes a single stream a tenth faster, for it is held back less often; a guest that runs
 * more than a few requests gets the narrow one, since it can have as many bodies waiting as it may have requests, and need not read any of them.
 */
const WIDE_BYTES = 512 * 1024
const NARROW_BYTES = 128 * 1024
const FEW_REQUESTS = 8

/** Whose body it is. */
export interface PumpOwner {
  /** requests of the same guest, this one among them */
  readonly requests: number
  /** Is told of an exception. */
  fault (error: unknown): void
}

/** What bodies come from. */
export interface PumpSource {
  pause (): unknown
  resume (): unknown
  isPaused (): boolean
}

/** Where bodies go. */
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
  /** batches that the target has not taken yet */
  #writing = 0
  /** small pieces of this turn of the event loop */
  #small = 0

  constructor (source: PumpSource, target: PumpTarget, owner: PumpOwner) {
    this.#source = source
    this.#target = target
    this.#owner = owner
  }

  /** Sends a copy of a piece, now or with the next ones of this turn of the event loop; holds the source back while the target is slower. */
  send (piece: Buffer): void {
    if (piece.length < SMALL_BYTES) this.#countSmall()
    if (this.#filled === 0 && piece.length < SMALL_BYTES && this.#small <= SMALL_ALONE) this.#target.write(Buffer.from(piece))
    else this.#gather(piece)
    if (this.#target.writableLength + this.#filled > (this.#owner.requests > FEW_REQUESTS ? NARROW_BYTES : WIDE_BYTES)) this.#holdBack()
  }

  /** A hundred thousand chunks of a byte can arrive at once: writing each by itself, or taking all of them in one turn, would hold the event loop up for other VMs. */
  #countSmall (): void {
    this.#small++
    if (this.#small === 1) setImmediate(() => { this.#small = 0 })
    if (this.#small !== SMALL_AT_ONCE || this.#source.isPaused()) return
    this.#source.pause()
    setImmediate(() => this.#run(() => { this.#source.resume() }))
  }

  /** Sends what was gathered; to be called before the target is ended. */
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
    // A target that failed may still be reading it.
    if (error) return
    this.#spare.push(batch)
    if (this.#writing === 0) this.flush()
  }

  /** What does not fill a batch goes when this turn is over, or, better, when the batch before it has gone. */
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
