// The `tracing` service: which plugin makes traces, if any.
import type { Span, SpanOptions } from './span.ts'

export interface RootOptions extends SpanOptions {
  /** W3C `traceparent` of the trace to continue; an invalid one is ignored */
  readonly parent?: string
}

/** Makes traces; a plugin implements it. */
export interface TraceMaker {
  /** A root span in this process; undefined when this trace is not sampled. */
  root (name: string, options: RootOptions): Span | undefined
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
