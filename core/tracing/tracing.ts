// The `tracing` service: which plugin makes traces, if any.
import type { Span, SpanAttributes, SpanKind, SpanOptions } from './span.ts'

export interface RootOptions extends SpanOptions {
  /** W3C `traceparent` of the trace to continue; an invalid one is ignored */
  readonly parent?: string | undefined
}

/** What spans of the same work have in common. A maker keeps what it makes of such an object: it is never changed, and the same work has the same object. */
export interface SpanShape {
  readonly name: string
  readonly kind: SpanKind
  readonly attributes: SpanAttributes
  /** the attribute of which each span has a value of its own */
  readonly key: string
}

/** A span without children, of work that is over. */
export interface SingleSpan {
  /** ms since the epoch */
  readonly startMs: number
  readonly endMs: number
  /** as of `RootOptions` */
  readonly parent: string | undefined
  /** of the shape's key; at most 128 characters, all of them ASCII */
  readonly value: string
}

/** Makes traces; a plugin implements it. */
export interface TraceMaker {
  /** A root span in this process; undefined when this trace is not sampled. */
  root (name: string, options: RootOptions): Span | undefined
  /** Makes a trace of one span, if it is sampled. It costs a small part of `root` and `end`. */
  single (shape: SpanShape, span: SingleSpan): void
}

export interface Tracing {
  /** undefined while no plugin makes traces */
  readonly maker: TraceMaker | undefined
  /** Makes this one the maker from now on. Returns the function that undoes it. */
  use (maker: TraceMaker): () => void
  /** Calls whenever a maker is set or removed. Returns the function that cancels this. */
  whenChanged (listener: () => void): () => void
}

export function createTracing (): Tracing {
  let maker: TraceMaker | undefined
  const listeners = new Set<() => void>()
  const change = (to: TraceMaker | undefined): void => {
    maker = to
    for (const listener of listeners) listener()
  }
  return {
    get maker () { return maker },
    use (given) {
      if (maker !== undefined) throw new Error('traces are made by another plugin already')
      change(given)
      return () => { change(undefined) }
    },
    whenChanged (listener) {
      listeners.add(listener)
      return () => { listeners.delete(listener) }
    }
  }
}
