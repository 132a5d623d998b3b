// Writes spans as messages of OTLP; the numbers are those of opentelemetry/proto/trace/v1/trace.proto and common/v1/common.proto, 1.x.
import type { PbfWriter } from 'pbf'
import type { SpanAttributes, SpanKind } from '../../../core/tracing/span.ts'
import type { EndedSpan } from './ended-span.ts'

/** A message `ScopeSpans`. */
export const SCOPE_SPANS = { scope: 1, spans: 2 }
export const SPAN = { traceId: 1, spanId: 2, parentSpanId: 4, name: 5, kind: 6, startTimeUnixNano: 7, endTimeUnixNano: 8, attributes: 9, status: 15, flags: 16 }
export const KINDS: Readonly<Record<SpanKind, number>> = { internal: 1, server: 2, client: 3 }
const STATUS_CODE = 3
const ERROR = 2
const KEY_VALUE = { key: 1, value: 2 }
const ANY_VALUE = { string: 1, bool: 2, int: 3, double: 4 }
/** the lowest bit of W3C's flags, and two of OTLP's: whether it is known where the parent was made, and where */
export const FLAGS = { sampled: 1, isRemoteKnown: 0x100, isRemote: 0x200 }
export const NS_PER_MS = 1e6
/** the wire type of messages, texts and bytes */
export const LENGTH_DELIMITED = 2
export const TRACE_ID_BYTES = 16
export const SPAN_ID_BYTES = 8

export function writeSpan (span: EndedSpan, pbf: PbfWriter): void {
  writeId(pbf, { field: SPAN.traceId, bytes: TRACE_ID_BYTES, id: span.traceId })
  writeId(pbf, { field: SPAN.spanId, bytes: SPAN_ID_BYTES, id: span.id })
  if (span.parentId !== '') writeId(pbf, { field: SPAN.parentSpanId, bytes: SPAN_ID_BYTES, id: span.parentId })
  pbf.writeStringField(SPAN.name, span.name)
  pbf.writeVarintField(SPAN.kind, KINDS[span.kind])
  pbf.writeFixed64Field(SPAN.startTimeUnixNano, span.startMs * NS_PER_MS)
  pbf.writeFixed64Field(SPAN.endTimeUnixNano, span.endMs * NS_PER_MS)
  const sets = span.attributes
  for (let index = 0; index < sets.length; index++) writeAttributes(sets[index] ?? {}, pbf, SPAN.attributes, (key) => isSetLater(sets, index, key))
  if (span.isFailed) pbf.writeMessage(SPAN.status, writeStatus, ERROR)
  pbf.writeFixed32Field(SPAN.flags, FLAGS.sampled | FLAGS.isRemoteKnown | (span.isParentRemote ? FLAGS.isRemote : 0))
}

/** @param isOmitted which keys are not written; absent: none */
export function writeAttributes (attributes: SpanAttributes, pbf: PbfWriter, field: number, isOmitted?: (key: string) => boolean): void {
  for (const key in attributes) {
    const value = attributes[key]
    if (value !== undefined && isOmitted?.(key) !== true) pbf.writeMessage(field, writeKeyValue, { key, value })
  }
}

function isSetLater (sets: readonly SpanAttributes[], index: number, key: string): boolean {
  for (let later = index + 1; later < sets.length; later++) if (sets[later]?.[key] !== undefined) return true
  return false
}

interface KeyValue { readonly key: string, readonly value: string | number | boolean }

function writeKeyValue ({ key, value }: KeyValue, pbf: PbfWriter): void {
  pbf.writeStringField(KEY_VALUE.key, key)
  pbf.writeMessage(KEY_VALUE.value, writeAnyValue, value)
}

function writeAnyValue (value: KeyValue['value'], pbf: PbfWriter): void {
  if (typeof value === 'string') pbf.writeStringField(ANY_VALUE.string, value)
  else if (typeof value === 'boolean') pbf.writeBooleanField(ANY_VALUE.bool, value)
  else if (Number.isSafeInteger(value)) pbf.writeVarintField(ANY_VALUE.int, value)
  else pbf.writeDoubleField(ANY_VALUE.double, value)
}

function writeStatus (code: number, pbf: PbfWriter): void {
  pbf.writeVarintField(STATUS_CODE, code)
}

interface Id { readonly field: number, readonly bytes: number, readonly id: string }

function writeId (pbf: PbfWriter, { field, bytes, id }: Id): void {
  pbf.writeTag(field, LENGTH_DELIMITED)
  pbf.writeVarint(bytes)
  pbf.realloc(bytes)
  for (let index = 0; index < bytes; index++) pbf.buf[pbf.pos + index] = (valueOf(id.charCodeAt(2 * index)) << 4) | valueOf(id.charCodeAt(2 * index + 1))
  pbf.pos += bytes
}

/** Of a lower-case hexadecimal digit. */
function valueOf (code: number): number {
  return code < 0x61 ? code - 0x30 : code - 0x57
}
