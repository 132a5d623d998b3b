// Where the time of a request goes: the kernel and plugins report their work, which becomes the spans of a trace when a plugin makes traces. Otherwise nothing is created and nothing is awaited.
import { AsyncLocalStorage } from 'node:async_hooks'

/** The attributes of a span. No secret, nothing that a guest or a caller chose freely, and no text of unlimited length. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

/** `server`: an incoming request; `client`: a request to another process; `internal`: work of this process. */
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
  /** Marks its work as failed: with the error's code or name, never its text. */
  fail (error: unknown): void
  /** Idempotent. @param endMs ms since the epoch; absent: now */
  end (endMs?: number): void
}

const current = new AsyncLocalStorage<Span | undefined>()

/** Spans that code was run in. */
const entered = new Set<Span>()

function enter<T> (span: Span, work: () => T): T {
  entered.add(span)
  return current.run(span, work)
}

/** Lets go of the spans that have ended, and of the contexts once each span that code was run in has: while there are any, every promise and every socket of the process costs more. */
export function exitEnded (): void {
  if (entered.size === 0) return
  // All of them: one may last as long as a terminal is open, and others end behind it.
  for (const span of entered) if (span.ended) entered.delete(span)
  if (entered.size === 0) current.disable()
}

/** The span that the running code belongs to; undefined outside of any, and in code that runs after its span has ended, such as a timer. */
export function currentSpan (): Span | undefined {
  const span = current.getStore()
  return span === undefined || span.ended ? undefined : span
}

/** Opens a span below the current one, for work that ends elsewhere: the caller must end it. */
export function openSpan (name: string, options?: SpanOptions): Span | undefined {
  return currentSpan()?.child(name, options)
}

/** Runs `work`, and everything that it starts, in `span`; with `undefined`, in no span, whatever the caller's is. */
export function withSpan<T> (span: Span | undefined, work: () => T): T {
  return span === undefined ? current.exit(work) : enter(span, work)
}

/** Runs `work` in a span of its own below the current one. */
export function traced<T> (name: string, options: SpanOptions, work: () => Promise<T>): Promise<T> {
  const parent = currentSpan()
  return parent === undefined ? work() : inChild(parent.child(name, options), work)
}

async function inChild<T> (span: Span, work: () => Promise<T>): Promise<T> {
  try {
    return await enter(span, work)
  } catch (error) {
    span.fail(error)
    throw error
  } finally {
    span.end()
  }
}
