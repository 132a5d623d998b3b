// Gives a stream of bytes in the pieces that a parser asks for, and keeps no more than one chunk.

export class Blocks {
  readonly #source: AsyncIterator<Buffer>
  readonly #limitBytes: number
  readonly #tooLong: () => Error
  #chunk: Buffer = Buffer.alloc(0)
  #readBytes = 0

  /** @param tooLong the error for a stream of more than `limitBytes` */
  constructor (source: AsyncIterable<Buffer>, limitBytes: number, tooLong: () => Error) {
    this.#source = source[Symbol.asyncIterator]()
    this.#limitBytes = limitBytes
    this.#tooLong = tooLong
  }

  /** Exactly `length` bytes, which must be a small number; fewer only at the end of the stream. */
  async take (length: number): Promise<Buffer> {
    const parts: Buffer[] = []
    let missing = length
    while (missing > 0) {
      const piece = await this.next(missing)
      if (piece === undefined) break
      parts.push(piece)
      missing -= piece.length
    }
    const [only] = parts
    return parts.length === 1 && only !== undefined ? only : Buffer.concat(parts)
  }

  /** The next bytes, at most `length` of them; undefined at the end of the stream. */
  async next (length: number): Promise<Buffer | undefined> {
    while (this.#chunk.length === 0) {
      const { value, done } = await this.#source.next()
      if (done === true) return undefined
      this.#readBytes += value.length
      if (this.#readBytes > this.#limitBytes) throw this.#tooLong()
      this.#chunk = value
    }
    const piece = this.#chunk.subarray(0, length)
    this.#chunk = this.#chunk.subarray(piece.length)
    return piece
  }
}
