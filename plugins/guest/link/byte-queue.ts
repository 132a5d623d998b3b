// Bytes waiting for their reader. Small pieces are merged, so that a guest cannot make many objects out of few bytes; and no piece keeps much more memory than it has.
import { ownMemory } from '../../../core/library/own-memory.ts'

const SMALL_BYTES = 1024
const MERGED_BYTES = 16_384

export class ByteQueue {
  readonly #pieces: Buffer[] = []
  /** the last piece, when it is our own copy and has room at its end */
  #open: { readonly buffer: Buffer, length: number } | undefined

  get empty (): boolean { return this.#pieces.length === 0 && this.#open === undefined }

  add (piece: Buffer): void {
    if (piece.length >= SMALL_BYTES) {
      this.#seal()
      this.#pieces.push(ownMemory(piece))
      return
    }
    if (this.#open !== undefined && this.#open.length + piece.length > MERGED_BYTES) this.#seal()
    this.#open ??= { buffer: Buffer.allocUnsafe(MERGED_BYTES), length: 0 }
    this.#open.length += piece.copy(this.#open.buffer, this.#open.length)
  }

  take (): Buffer | undefined {
    if (this.#pieces.length === 0) this.#seal()
    return this.#pieces.shift()
  }

  clear (): void {
    this.#pieces.length = 0
    this.#open = undefined
  }

  #seal (): void {
    if (this.#open === undefined) return
    this.#pieces.push(ownMemory(this.#open.buffer.subarray(0, this.#open.length)))
    this.#open = undefined
  }
}
