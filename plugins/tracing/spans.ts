// Makes the spans of the kernel. They are objects of ours, for every request makes one: a span of OpenTelemetry's SDK, its batches and its serialiser cost as much as a read of an instance.
import { TraceFlags } from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import type { Span, SpanAttributes, SpanKind, SpanOptions } from '../../core/tracing/span.ts'
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
  return {
    root (name, options) {
      const { parent } = options
      const remote = parent === undefined || parent.length > LONGEST_PARENT ? null : parseTraceParent(parent)
      const isTaken = remote === null ? sample === 1 || Math.random() < sample : (remote.traceFlags & TraceFlags.SAMPLED) !== 0
      if (!isTaken) return undefined
      const trace: Trace = { id: remote?.traceId ?? newTraceId(), offsetMs: Date.now() - performance.now(), onEnd }
      return new RecordedSpan(trace, { parentId: remote?.spanId ?? '', isParentRemote: remote !== null, name }, options)
    }
  }
}

/** What the spans of one trace share. */
interface Trace {
  readonly id: string
  /** of the steady clock to the epoch, as the trace began: the clock of the host may be set while it lasts */
  readonly offsetMs: number
  readonly onEnd: (span: EndedSpan) => void
}

interface Place { readonly parentId: string, readonly isParentRemote: boolean, readonly name: string }

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

  constructor (trace: Trace, { parentId, isParentRemote, name }: Place, { kind = 'internal', attributes, startMs = trace.offsetMs + performance.now() }: SpanOptions) {
    this.#trace = trace
    this.traceId = trace.id
    this.parentId = parentId
    this.isParentRemote = isParentRemote
    this.name = name
    this.kind = kind
    this.startMs = startMs
    if (attributes !== undefined) this.attributes.push(attributes)
  }

  child (name: string, options: SpanOptions = {}): Span {
    return new RecordedSpan(this.#trace, { parentId: this.id, isParentRemote: false, name }, options)
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
