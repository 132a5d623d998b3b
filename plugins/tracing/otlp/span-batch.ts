// Spans of one post, written when they end: nothing of them stays on the heap while they wait.
import { PbfWriter } from 'pbf'
import type { SingleSpan, SpanShape } from '../../../core/tracing/tracing.ts'
import type { EndedSpan } from './ended-span.ts'
import { SingleRows, type SealedRows } from './single-rows.ts'
import { SCOPE_SPANS, writeSpan } from './write-span.ts'

const FIRST_BYTES = 4096
/** More than the message of a single span has beside its row: ids, names of attributes, method, route, lengths. */
const BYTES_OF_SINGLE = 256

/** What is posted: messages of spans, and rows that become messages where it is posted; all in memory of its own, which is given to the thread that posts it. */
export interface SealedBatch {
  readonly messages: Uint8Array<ArrayBuffer>
  readonly singles: SealedRows
  readonly spans: number
}

export class SpanBatch {
  readonly #messages = new PbfWriter(new Uint8Array(FIRST_BYTES))
  readonly #singles = new SingleRows()
  #inMessages = 0
  #inSingles = 0

  get spans (): number { return this.#inMessages + this.#inSingles }

  /** About as many as the post will have. */
  get bytes (): number { return this.#messages.pos + this.#inSingles * BYTES_OF_SINGLE }

  add (span: EndedSpan): void {
    this.#messages.writeMessage(SCOPE_SPANS.spans, writeSpan, span)
    this.#inMessages++
  }

  addSingle (shape: SpanShape, span: SingleSpan): void {
    this.#singles.add(shape, span)
    this.#inSingles++
  }

  /** Takes what was added out. */
  seal (): SealedBatch {
    const sealed = { messages: new Uint8Array(this.#messages.buf.subarray(0, this.#messages.pos)), singles: this.#singles.seal(), spans: this.spans }
    this.#messages.pos = 0
    this.#inMessages = 0
    this.#inSingles = 0
    return sealed
  }
}
