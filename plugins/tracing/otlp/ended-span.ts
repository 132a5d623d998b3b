// A span as it is sent.
import type { SpanAttributes, SpanKind } from '../../../core/tracing/span.ts'

export interface EndedSpan {
  /** 32 hexadecimal digits */
  readonly traceId: string
  /** 16 hexadecimal digits */
  readonly id: string
  /** the same of its parent; empty: it has none */
  readonly parentId: string
  /** whether the parent is a span of the caller */
  readonly isParentRemote: boolean
  readonly name: string
  readonly kind: SpanKind
  /** ms since the epoch, with fractions */
  readonly startMs: number
  readonly endMs: number
  readonly isFailed: boolean
  /** as they were set, one after the other: of a key that was set twice, the later value counts */
  readonly attributes: readonly SpanAttributes[]
}
