// The `tracing` service: who makes spans, if anybody does.
import type { Span, SpanOptions } from './span.ts'

export interface RootOptions extends SpanOptions {
  /** W3C `traceparent` of a caller whose trace this is to go on; one that cannot be read is passed over */
  readonly parent?: string
}

/** Makes traces: the one of a plugin. */
export interface TraceMaker {
  /** A span that no other of this process is above; undefined when this trace is not among those that are taken. */
  root (name: string, options: RootOptions): Span | undefined
}

export interface Tracing {
  /** undefined while nobody makes traces */
  readonly maker: TraceMaker | undefined
  /** From now on this one makes them. Returns what takes that back. */
  use (maker: TraceMaker): () => void
  /** Calls whenever somebody begins or ends to make them. Returns what takes that back. */
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
