// Spans without parent and children as they wait: what differs from one to the next, as a row of bytes. A busy server ends tens of thousands a second, and what its main thread does for one of them counts; the thread that posts them makes messages of the rows.
import type { SingleSpan, SpanShape } from '../../../core/tracing/tracing.ts'

/** A row: start and end in ms since the epoch (two doubles), the number of its shape (16 bits), the length of its text (8 bits), the text in ASCII. */
const ROW = { start: 0, end: 8, shape: 16, length: 18, text: 19 }
const FIRST_BYTES = 65_536

/** Rows in memory of their own, which can be given to another thread. */
export interface SealedRows { readonly rows: Uint8Array<ArrayBuffer>, readonly shapes: readonly SpanShape[] }

/** One row, looked at where it lies. */
export interface SingleRow {
  readonly shape: SpanShape
  readonly startMs: number
  readonly endMs: number
  readonly text: Uint8Array
}

export class SingleRows {
  #bytes = new Uint8Array(FIRST_BYTES)
  #view = new DataView(this.#bytes.buffer)
  #at = 0
  #numbers = new Map<SpanShape, number>()

  add (shape: SpanShape, { startMs, endMs, value }: SingleSpan): void {
    const at = this.#at
    const { length } = value
    const text = at + ROW.text
    if (text + length > this.#bytes.length) this.#grow()
    const bytes = this.#bytes
    const view = this.#view
    view.setFloat64(at + ROW.start, startMs)
    view.setFloat64(at + ROW.end, endMs)
    view.setUint16(at + ROW.shape, this.#numberOf(shape))
    bytes[at + ROW.length] = length
    for (let index = 0; index < length; index++) bytes[text + index] = value.charCodeAt(index)
    this.#at = text + length
  }

  /** Takes what was added out. */
  seal (): SealedRows {
    const sealed = { rows: this.#bytes.slice(0, this.#at), shapes: [...this.#numbers.keys()] }
    this.#at = 0
    this.#numbers = new Map()
    return sealed
  }

  #numberOf (shape: SpanShape): number {
    let number = this.#numbers.get(shape)
    if (number === undefined) this.#numbers.set(shape, number = this.#numbers.size)
    return number
  }

  #grow (): void {
    const larger = new Uint8Array(this.#bytes.length * 2)
    larger.set(this.#bytes)
    this.#bytes = larger
    this.#view = new DataView(larger.buffer)
  }
}

export function * rowsOf ({ rows, shapes }: SealedRows): Generator<SingleRow> {
  const view = new DataView(rows.buffer, rows.byteOffset, rows.length)
  for (let at = 0; at < rows.length;) {
    const [text, shape] = [at + ROW.text, shapes[view.getUint16(at + ROW.shape)]]
    const end = text + view.getUint8(at + ROW.length)
    if (shape === undefined) throw new Error('a row of a span has no shape')
    yield { shape, startMs: view.getFloat64(at + ROW.start), endMs: view.getFloat64(at + ROW.end), text: rows.subarray(text, end) }
    at = end
  }
}
