// Spans of one post, written when they end: nothing of them stays on the heap while they wait.
import { PbfWriter } from 'pbf'
import type { SpanAttributes } from '../../../core/tracing/span.ts'
import type { SingleSpan, SpanShape } from '../../../core/tracing/tracing.ts'
import type { EndedSpan } from './ended-span.ts'
import { writeSingleSpan } from './single-span.ts'
import { SCOPE_SPANS, writeAttributes, writeSpan } from './write-span.ts'

/** Numbers of opentelemetry/proto/collector/trace/v1 and what it is made of. */
const REQUEST = { resourceSpans: 1 }
const RESOURCE_SPANS = { resource: 1, scopeSpans: 2 }
const RESOURCE = { attributes: 1 }
const SCOPE = { name: 1, version: 2 }
const FIRST_BYTES = 65_536
const LENGTH_DELIMITED = 2

/** What made the spans. */
export interface SpanSource {
  /** attributes of the program */
  readonly resource: SpanAttributes
  readonly scope: { readonly name: string, readonly version: string }
}

/** The body of a post, in memory of its own, which is given to the thread that posts it. */
export interface SealedBatch { readonly body: Uint8Array<ArrayBuffer>, readonly spans: number }

export class SpanBatch {
  readonly #resource: Uint8Array
  readonly #scope: Uint8Array
  readonly #spans = new PbfWriter(new Uint8Array(FIRST_BYTES))
  #count = 0

  constructor ({ resource, scope }: SpanSource) {
    this.#resource = written((pbf) => { pbf.writeMessage(RESOURCE_SPANS.resource, (of: SpanAttributes, inner) => { writeAttributes(of, inner, RESOURCE.attributes) }, resource) })
    this.#scope = written((pbf) => { pbf.writeMessage(SCOPE_SPANS.scope, writeScope, scope) })
  }

  get spans (): number { return this.#count }

  get bytes (): number { return this.#spans.pos }

  add (span: EndedSpan): void {
    this.#spans.writeMessage(SCOPE_SPANS.spans, writeSpan, span)
    this.#count++
  }

  addSingle (shape: SpanShape, span: SingleSpan): void {
    writeSingleSpan(this.#spans, shape, span)
    this.#count++
  }

  /** Takes what was added out. */
  seal (): SealedBatch {
    const spans = this.#spans.buf.subarray(0, this.#spans.pos)
    const inner = headOf(RESOURCE_SPANS.scopeSpans, this.#scope.length + spans.length)
    const outer = headOf(REQUEST.resourceSpans, this.#resource.length + inner.length + this.#scope.length + spans.length)
    const sealed = { body: joined([outer, this.#resource, inner, this.#scope, spans]), spans: this.#count }
    this.#spans.pos = 0
    this.#count = 0
    return sealed
  }
}

/** Not by `Buffer.concat`, whose small buffers share their memory. */
function joined (parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

function writeScope ({ name, version }: SpanSource['scope'], pbf: PbfWriter): void {
  pbf.writeStringField(SCOPE.name, name)
  pbf.writeStringField(SCOPE.version, version)
}

/** What stands in front of a message of so many bytes. */
function headOf (field: number, length: number): Uint8Array {
  return written((pbf) => {
    pbf.writeTag(field, LENGTH_DELIMITED)
    pbf.writeVarint(length)
  })
}

function written (write: (pbf: PbfWriter) => void): Uint8Array {
  const pbf = new PbfWriter()
  write(pbf)
  return pbf.finish()
}
