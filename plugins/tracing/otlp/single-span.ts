// The message of a span without parent and children. What differs from one span of a shape to the next is two ids, two times and one text: the message is written once, and copied with holes that are filled.
import { PbfWriter } from 'pbf'
import type { SpanShape } from '../../../core/tracing/tracing.ts'
import { drawId } from '../ids.ts'
import type { SingleRow } from './single-rows.ts'
import { FLAGS, KINDS, NS_PER_MS, SCOPE_SPANS, SPAN, SPAN_ID_BYTES, TRACE_ID_BYTES, writeAttributes } from './write-span.ts'

const TIME_BYTES = 8

/** Writes it with ids that are drawn for it: nobody else is told them. */
export function writeSingleSpan (pbf: PbfWriter, { shape, startMs, endMs, text }: SingleRow): void {
  const template = templateOf(shape, text.length)
  const { length } = template.bytes
  pbf.realloc(length)
  const { buf, pos } = pbf
  buf.set(template.bytes, pos)
  drawId(TRACE_ID_BYTES, buf, pos + template.traceId)
  drawId(SPAN_ID_BYTES, buf, pos + template.spanId)
  buf.set(text, pos + template.value)
  pbf.pos = pos + template.start
  pbf.writeFixed64(startMs * NS_PER_MS)
  pbf.pos = pos + template.end
  pbf.writeFixed64(endMs * NS_PER_MS)
  pbf.pos = pos + length
}

/** How many bytes its message has, with a text of so many. */
export function singleSpanBytes (shape: SpanShape, length: number): number {
  return templateOf(shape, length).bytes.length
}

/** A message with holes. The places are counted from its first byte. */
interface Template {
  readonly bytes: Uint8Array
  readonly traceId: number
  readonly spanId: number
  readonly start: number
  readonly end: number
  readonly value: number
}

/** By the length of the text: protobuf writes lengths in front of the messages around it. */
const templates = new WeakMap<SpanShape, Template[]>()

function templateOf (shape: SpanShape, length: number): Template {
  let byLength = templates.get(shape)
  if (byLength === undefined) templates.set(shape, byLength = [])
  byLength[length] ??= makeTemplate(shape, length)
  return byLength[length]
}

function makeTemplate ({ name, kind, attributes, key }: SpanShape, length: number): Template {
  const pbf = new PbfWriter()
  const idHole = (field: number, bytes: number): number => {
    pbf.writeBytesField(field, new Uint8Array(bytes))
    return pbf.pos - bytes
  }
  const timeHole = (field: number): number => {
    pbf.writeFixed64Field(field, 0)
    return pbf.pos - TIME_BYTES
  }
  const holes = { traceId: idHole(SPAN.traceId, TRACE_ID_BYTES), spanId: idHole(SPAN.spanId, SPAN_ID_BYTES), start: timeHole(SPAN.startTimeUnixNano), end: timeHole(SPAN.endTimeUnixNano) }
  pbf.writeStringField(SPAN.name, name)
  pbf.writeVarintField(SPAN.kind, KINDS[kind])
  pbf.writeFixed32Field(SPAN.flags, FLAGS.sampled | FLAGS.isRemoteKnown)
  writeAttributes(attributes, pbf, SPAN.attributes)
  // The last one, so that its text ends the message.
  writeAttributes({ [key]: '0'.repeat(length) }, pbf, SPAN.attributes)
  const message = pbf.finish()
  const whole = new PbfWriter()
  whole.writeBytesField(SCOPE_SPANS.spans, message)
  const bytes = whole.finish()
  const before = bytes.length - message.length
  return { bytes, traceId: before + holes.traceId, spanId: before + holes.spanId, start: before + holes.start, end: before + holes.end, value: bytes.length - length }
}
