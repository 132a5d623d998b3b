// Makes the spans of the kernel. They are objects of ours, for every request makes one: a span of OpenTelemetry's SDK, its batches and its serialiser cost as much as a read of an instance.
import { TraceFlags, type SpanContext } from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import type { Span, SpanAttributes, SpanKind, SpanOptions } from '../../core/tracing/span.ts'
import type { SingleSpan, SpanShape, TraceMaker } from '../../core/tracing/tracing.ts'
import { newSpanId, newTraceId } from './ids.ts'
import type { EndedSpan } from './otlp/ended-span.ts'

/** W3C's form has 55 characters; a later version may add to it */
const LONGEST_PARENT = 200

/** Takes spans that have ended. */
export interface EndedSpans {
  add (span: EndedSpan): void
  /** one without parent and children, whose ids nobody else is told */
  addSingle (shape: SpanShape, span: SingleSpan): void
}

/** @param sample share of the traces that are taken; of those that go on with a caller's, the caller says */
export function createTraceMaker (spans: EndedSpans, sample: number): TraceMaker {
  const isTaken = (): boolean => sample === 1 || Math.random() < sample
  /** The span of a trace that goes on with the caller's; undefined: the caller does not take it. */
  const remote = ({ traceFlags, traceId, spanId }: SpanContext, name: string, options: SpanOptions): RecordedSpan | undefined => {
    return (traceFlags & TraceFlags.SAMPLED) === 0 ? undefined : new RecordedSpan({ traceId, parentId: spanId, isParentRemote: true, name }, options, newTrace(spans))
  }
  return {
    root (name, options) {
      const caller = callerOf(options.parent)
      if (caller !== null) return remote(caller, name, options)
      return isTaken() ? new RecordedSpan({ traceId: newTraceId(), parentId: '', isParentRemote: false, name }, options, newTrace(spans)) : undefined
    },
    single (shape, span) {
      const caller = callerOf(span.parent)
      if (caller === null) {
        if (isTaken()) spans.addSingle(shape, span)
        return
      }
      const { name, kind, attributes, key } = shape
      remote(caller, name, { kind, startMs: span.startMs, attributes: { ...attributes, [key]: span.value } })?.end(span.endMs)
    }
  }
}

function callerOf (parent: string | undefined): SpanContext | null {
  return parent === undefined || parent.length > LONGEST_PARENT ? null : parseTraceParent(parent)
}

/** What the spans of one trace share. */
interface Trace {
  /** of the steady clock to the epoch, as the trace began: the clock of the host may be set while it lasts */
  readonly offsetMs: number
  readonly spans: EndedSpans
}

function newTrace (spans: EndedSpans): Trace {
  return { offsetMs: Date.now() - performance.now(), spans }
}

interface Place { readonly traceId: string, readonly parentId: string, readonly isParentRemote: boolean, readonly name: string }

class RecordedSpan implements Span, EndedSpan {
  readonly #trace: Trace
  readonly traceId: string
  readonly id = newSpanId()
  readonly parentId: string
  readonly isParentRemote: boolean
  readonly name: string
  readonly kind: SpanKind
  readonly startMs: number
  readonly attributes: SpanAttributes[] = []
  endMs = 0
  isFailed = false
  ended = false

  constructor ({ traceId, parentId, isParentRemote, name }: Place, { kind = 'internal', attributes, startMs }: SpanOptions, trace: Trace) {
    this.#trace = trace
    this.traceId = traceId
    this.parentId = parentId
    this.isParentRemote = isParentRemote
    this.name = name
    this.kind = kind
    this.startMs = startMs ?? trace.offsetMs + performance.now()
    if (attributes !== undefined) this.attributes.push(attributes)
  }

  child (name: string, options: SpanOptions = {}): Span {
    return new RecordedSpan({ traceId: this.traceId, parentId: this.id, isParentRemote: false, name }, options, this.#trace)
  }

  set (attributes: SpanAttributes): void {
    this.attributes.push(attributes)
  }

  fail (error: unknown): void {
    this.isFailed = true
    if (error instanceof Error) this.set({ 'error.type': 'code' in error && typeof error.code === 'string' ? error.code : error.name })
  }

  end (endMs = this.#trace.offsetMs + performance.now()): void {
    if (this.ended) return
    this.ended = true
    this.endMs = endMs
    this.#trace.spans.add(this)
  }
}
