// Where the time of a request goes: the kernel and plugins say what they do, and it becomes spans of a trace where somebody makes one. Where nobody does, nothing is made and nothing is awaited.
import { AsyncLocalStorage } from 'node:async_hooks'

/** What a span says beside its name. No secret, nothing that a guest or a caller chose freely, and no text without bound. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

/** `server`: a request that came in; `client`: one that goes out to another process; `internal`: work of this one. */
export type SpanKind = 'server' | 'client' | 'internal'

export interface SpanOptions {
  readonly kind?: SpanKind
  readonly attributes?: SpanAttributes
  /** when it began, ms since the epoch; absent: now */
  readonly startMs?: number
}

export interface Span {
  /** 32 hexadecimal digits */
  readonly traceId: string
  readonly ended: boolean
  child (name: string, options?: SpanOptions): Span
  set (attributes: SpanAttributes): void
  /** Notes that its work failed: the error's code or name, never its text. */
  fail (error: unknown): void
  /** Idempotent. @param endMs ms since the epoch; absent: now */
  end (endMs?: number): void
}

const current = new AsyncLocalStorage<Span | undefined>()

/** The span that the running code belongs to; undefined outside of any, and in what goes on after its span has ended, as a timer does. */
export function currentSpan (): Span | undefined {
  const span = current.getStore()
  return span === undefined || span.ended ? undefined : span
}

/** A span below the current one, for work that does not end where it began: whoever opens it ends it. */
export function openSpan (name: string, options?: SpanOptions): Span | undefined {
  return currentSpan()?.child(name, options)
}

/** Runs `work`, and all that it sets off, in `span`; with `undefined` in none, whatever the caller's is. */
export function withSpan<T> (span: Span | undefined, work: () => T): T {
  return span === undefined ? current.exit(work) : current.run(span, work)
}

/** Runs `work` in a span of its own below the current one. */
export function traced<T> (name: string, options: SpanOptions, work: () => Promise<T>): Promise<T> {
  const parent = currentSpan()
  return parent === undefined ? work() : inChild(parent.child(name, options), work)
}

async function inChild<T> (span: Span, work: () => Promise<T>): Promise<T> {
  try {
    return await current.run(span, work)
  } catch (error) {
    span.fail(error)
    throw error
  } finally {
    span.end()
  }
}
