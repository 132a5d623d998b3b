// The body of a post: a message ExportTraceServiceRequest of opentelemetry/proto/collector/trace/v1.
import { PbfWriter } from 'pbf'
import type { SpanAttributes } from '../../../core/tracing/span.ts'
import { rowsOf } from './single-rows.ts'
import { writeSingleSpan } from './single-span.ts'
import type { SealedBatch } from './span-batch.ts'
import { LENGTH_DELIMITED, SCOPE_SPANS, writeAttributes } from './write-span.ts'

const REQUEST = { resourceSpans: 1 }
const RESOURCE_SPANS = { resource: 1, scopeSpans: 2 }
const RESOURCE = { attributes: 1 }
const SCOPE = { name: 1, version: 2 }
const FIRST_BYTES = 65_536

/** What made the spans. */
export interface SpanSource {
  /** attributes of the program */
  readonly resource: SpanAttributes
  readonly scope: { readonly name: string, readonly version: string }
}

/** Returns what writes bodies with spans of this source. */
export function bodiesOf ({ resource, scope }: SpanSource): (batch: SealedBatch) => Uint8Array {
  const resourceBytes = written((pbf) => { pbf.writeMessage(RESOURCE_SPANS.resource, (of: SpanAttributes, inner) => { writeAttributes(of, inner, RESOURCE.attributes) }, resource) })
  const scopeBytes = written((pbf) => { pbf.writeMessage(SCOPE_SPANS.scope, writeScope, scope) })
  const singles = new PbfWriter(new Uint8Array(FIRST_BYTES))
  return (batch) => {
    singles.pos = 0
    for (const row of rowsOf(batch.singles)) writeSingleSpan(singles, row)
    const spans = [batch.messages, singles.buf.subarray(0, singles.pos)]
    const inner = headOf(RESOURCE_SPANS.scopeSpans, lengthOf([scopeBytes, ...spans]))
    const outer = headOf(REQUEST.resourceSpans, lengthOf([resourceBytes, inner, scopeBytes, ...spans]))
    return Buffer.concat([outer, resourceBytes, inner, scopeBytes, ...spans])
  }
}

function lengthOf (parts: readonly Uint8Array[]): number {
  return parts.reduce((length, part) => length + part.length, 0)
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
