// Makes the spans of the kernel. They are objects of ours, for every request makes one: a span of OpenTelemetry's SDK, its batches and its serialiser cost as much as a read of an instance.
import { TraceFlags } from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import type { Span, SpanAttributes, SpanOptions } from '../../core/tracing/span.ts'
import type { TraceMaker } from '../../core/tracing/tracing.ts'
import { newSpanId, newTraceId } from './ids.ts'
import type { EndedSpan } from './otlp/ended-span.ts'

/** W3C's form has 55 characters; a later version may add to it */
const LONGEST_PARENT = 200

export interface TraceMakerOptions {
  /** share of the traces that are taken; of those that go on with a caller's, the caller says */
  readonly sample: number
  /** called with each span that has ended */
  readonly onEnd: (span: EndedSpan) => void
}

export function createTraceMaker ({ sample, onEnd }: TraceMakerOptions): TraceMaker {
  /** The caller's span, or none; undefined: the trace is not taken. */
  const originOf = (parent: string | undefined): Origin | undefined => {
    const remote = parent === undefined || parent.length > LONGEST_PARENT ? null : parseTraceParent(parent)
    if (remote === null) return sample === 1 || Math.random() < sample ? NEW : undefined
    return (remote.traceFlags & TraceFlags.SAMPLED) === 0 ? undefined : { traceId: remote.traceId, parentId: remote.spanId, isParentRemote: true }
  }
  return {
    root (name, options) {
      const origin = originOf(options.parent)
      if (origin === undefined) return undefined
      const { traceId = newTraceId(), parentId, isParentRemote } = origin
      return new RecordedSpan({ traceId, parentId, isParentRemote, name }, options, { offsetMs: Date.now() - performance.now(), onEnd })
    },
    single (shape, { parent, startMs, endMs, attributes }) {
      const origin = originOf(parent)
      if (origin === undefined) return
      const { traceId, parentId, isParentRemote } = origin
      onEnd({ traceId, id: undefined, parentId, isParentRemote, what: shape, startMs, endMs, isFailed: false, attributes: [attributes] })
    }
  }
}

/** Where a trace comes from. */
interface Origin { readonly traceId: string | undefined, readonly parentId: string, readonly isParentRemote: boolean }

const NEW: Origin = { traceId: undefined, parentId: '', isParentRemote: false }

/** What the spans of one trace share. */
interface Trace {
  /** of the steady clock to the epoch, as the trace began: the clock of the host may be set while it lasts */
  readonly offsetMs: number
  readonly onEnd: (span: EndedSpan) => void
}

interface Place { readonly traceId: string, readonly parentId: string, readonly isParentRemote: boolean, readonly name: string }

class RecordedSpan implements Span, EndedSpan {
  readonly #trace: Trace
  readonly traceId: string
  readonly id = newSpanId()
  readonly parentId: string
  readonly isParentRemote: boolean
  readonly what: EndedSpan['what']
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
    this.what = { name, kind }
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
    this.#trace.onEnd(this)
  }
}
