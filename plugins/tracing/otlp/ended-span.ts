// A span as it is sent.
import type { SpanAttributes, SpanKind } from '../../../core/tracing/span.ts'
import type { SpanShape } from '../../../core/tracing/tracing.ts'

export interface EndedSpan {
  /** 32 hexadecimal digits; undefined: drawn when it is written, since nobody else is told */
  readonly traceId: string | undefined
  /** 16 hexadecimal digits; undefined as before */
  readonly id: string | undefined
  /** the same of its parent; empty: it has none */
  readonly parentId: string
  /** whether the parent is a span of the caller */
  readonly isParentRemote: boolean
  /** a shape is written once, and copied for each span */
  readonly what: SpanShape | { readonly name: string, readonly kind: SpanKind }
  /** ms since the epoch, with fractions */
  readonly startMs: number
  readonly endMs: number
  readonly isFailed: boolean
  /** as they were set, one after the other: of a key that was set twice, the later value counts. None of the shape's keys */
  readonly attributes: readonly SpanAttributes[]
}
