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
}

export function createTracing (): Tracing {
  let maker: TraceMaker | undefined
  return {
    get maker () { return maker },
    use (given) {
      if (maker !== undefined) throw new Error('traces are made by another plugin already')
      maker = given
      return () => { maker = undefined }
    }
  }
}
