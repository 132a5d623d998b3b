// Keeps the end of what a process prints.

/** The last `limit` bytes of what was added, as whole lines when something was left out. */
export class BoundedText {
  readonly #limit: number
  #chunks: Buffer[] = []
  #size = 0
  #left = 0

  constructor (limit: number) {
    this.#limit = limit
  }

  add (chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    // Not at each chunk: with many small ones the text would be copied again and again.
    if (this.#size > 2 * this.#limit) this.#cut()
  }

  toString (): string {
    if (this.#size > this.#limit) this.#cut()
    const text = Buffer.concat(this.#chunks).toString('utf8')
    return this.#left === 0 ? text : `(${this.#left} bytes before this)\n${text.slice(text.indexOf('\n') + 1)}`
  }

  #cut (): void {
    const all = Buffer.concat(this.#chunks)
    const kept = all.subarray(-this.#limit)
    this.#left += all.length - kept.length
    this.#chunks = [kept]
    this.#size = kept.length
  }
}
