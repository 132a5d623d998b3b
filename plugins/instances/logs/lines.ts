// Cuts bytes into lines of bounded length. Pure state: feed it blocks, take lines out.

/** A longer line is cut into pieces of this size. */
export const MAX_LINE_BYTES = 64 * 1024

const NEWLINE = 0x0a

export class LineSplitter {
  #rest: Buffer = Buffer.alloc(0)
  readonly #trimCarriageReturn: boolean

  /** @param options.trimCarriageReturn for serial consoles, which end lines with CR LF */
  constructor (options: { trimCarriageReturn: boolean }) {
    this.#trimCarriageReturn = options.trimCarriageReturn
  }

  /** The lines that are complete now. Bytes that are no UTF-8 become U+FFFD. */
  push (block: Buffer): string[] {
    const lines: string[] = []
    let data = this.#rest.length === 0 ? block : Buffer.concat([this.#rest, block])
    for (;;) {
      const at = data.indexOf(NEWLINE)
      if (at >= 0 && at <= MAX_LINE_BYTES) {
        lines.push(this.#text(data.subarray(0, at)))
        data = data.subarray(at + 1)
      } else if (data.length > MAX_LINE_BYTES) {
        const cut = characterBoundary(data, MAX_LINE_BYTES)
        lines.push(data.toString('utf8', 0, cut))
        data = data.subarray(cut)
      } else break
    }
    // A copy, so that the rest of a line does not keep the whole block alive.
    this.#rest = Buffer.from(data)
    return lines
  }

  /** The last line when it lacks its newline. */
  flush (): string[] {
    if (this.#rest.length === 0) return []
    const line = this.#text(this.#rest)
    this.#rest = Buffer.alloc(0)
    return [line]
  }

  #text (bytes: Buffer): string {
    const end = this.#trimCarriageReturn && bytes.at(-1) === 0x0d ? bytes.length - 1 : bytes.length
    return bytes.toString('utf8', 0, end)
  }
}

/** The last place at or before `at` where no character is cut in two; among bytes that are no UTF-8, `at` itself. */
function characterBoundary (data: Buffer, at: number): number {
  for (let back = 1; back <= 3; back++) {
    const byte = data[at - back] ?? 0
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? at - back : at
  }
  return at
}
