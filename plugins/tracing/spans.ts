// Turns spans of the kernel into spans of OpenTelemetry.
import { ROOT_CONTEXT, SpanKind as OtelKind, SpanStatusCode, trace, TraceFlags, type Context, type Span as OtelSpan, type Tracer } from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import type { Span, SpanAttributes, SpanKind, SpanOptions } from '../../core/tracing/span.ts'
import type { TraceMaker } from '../../core/tracing/tracing.ts'

const KINDS: Readonly<Record<SpanKind, OtelKind>> = { server: OtelKind.SERVER, client: OtelKind.CLIENT, internal: OtelKind.INTERNAL }

/** W3C's form has 55 characters; a later version may add to it */
const LONGEST_PARENT = 200

export function createTraceMaker (tracer: Tracer): TraceMaker {
  return {
    root (name, { parent, ...options }) {
      const remote = parent === undefined || parent.length > LONGEST_PARENT ? null : parseTraceParent(parent)
      const context = remote === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, { ...remote, isRemote: true })
      const span = begin(tracer, name, options, context)
      return (span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0 ? undefined : new ExportedSpan(tracer, span)
    }
  }
}

function begin (tracer: Tracer, name: string, { kind = 'internal', attributes, startMs }: SpanOptions, context: Context): OtelSpan {
  return tracer.startSpan(name, { kind: KINDS[kind], ...attributes === undefined ? {} : { attributes }, ...startMs === undefined ? {} : { startTime: startMs } }, context)
}

class ExportedSpan implements Span {
  readonly #tracer: Tracer
  readonly #span: OtelSpan
  #context: Context | undefined
  ended = false

  constructor (tracer: Tracer, span: OtelSpan) {
    this.#tracer = tracer
    this.#span = span
  }

  get traceId (): string {
    return this.#span.spanContext().traceId
  }

  child (name: string, options: SpanOptions = {}): Span {
    this.#context ??= trace.setSpan(ROOT_CONTEXT, this.#span)
    return new ExportedSpan(this.#tracer, begin(this.#tracer, name, options, this.#context))
  }

  set (attributes: SpanAttributes): void {
    this.#span.setAttributes(attributes)
  }

  fail (error: unknown): void {
    this.#span.setStatus({ code: SpanStatusCode.ERROR })
    if (error instanceof Error) this.#span.setAttribute('error.type', 'code' in error && typeof error.code === 'string' ? error.code : error.name)
  }

  end (endMs?: number): void {
    if (this.ended) return
    this.ended = true
    this.#span.end(endMs)
  }
}
