// Spans of one post, written when they end: nothing of them stays on the heap while they wait.
import { PbfWriter } from 'pbf'
import type { SingleSpan, SpanShape } from '../../../core/tracing/tracing.ts'
import type { EndedSpan } from './ended-span.ts'
import { SingleRows, type SealedRows } from './single-rows.ts'
import { singleSpanBytes } from './single-span.ts'
import { SCOPE_SPANS, writeSpan } from './write-span.ts'

const FIRST_BYTES = 4096

/** What is posted: messages of spans, and rows that become messages where it is posted; all in memory of its own, which is given to the thread that posts it. */
export interface SealedBatch {
  readonly messages: Uint8Array<ArrayBuffer>
  readonly singles: SealedRows
  readonly spans: number
}

export class SpanBatch {
  readonly #messages = new PbfWriter(new Uint8Array(FIRST_BYTES))
  readonly #singles = new SingleRows()
  #spans = 0
  #bytesOfSingles = 0

  get spans (): number { return this.#spans }

  /** of the spans as they will be posted */
  get bytes (): number { return this.#messages.pos + this.#bytesOfSingles }

  add (span: EndedSpan): void {
    this.#messages.writeMessage(SCOPE_SPANS.spans, writeSpan, span)
    this.#spans++
  }

  addSingle (shape: SpanShape, span: SingleSpan): void {
    this.#singles.add(shape, span)
    this.#bytesOfSingles += singleSpanBytes(shape, span.value.length)
    this.#spans++
  }

  /** Takes what was added out. */
  seal (): SealedBatch {
    const sealed = { messages: new Uint8Array(this.#messages.buf.subarray(0, this.#messages.pos)), singles: this.#singles.seal(), spans: this.#spans }
    this.#messages.pos = 0
    this.#spans = 0
    this.#bytesOfSingles = 0
    return sealed
  }
}
