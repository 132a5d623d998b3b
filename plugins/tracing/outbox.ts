// The spans that wait to be posted, of which the collector gets one batch at a time. It logs once when the collector does not take them, and once when it does again.
import type { Logger } from '../../core/contracts/services.ts'
import type { SingleSpan, SpanShape } from '../../core/tracing/tracing.ts'
import type { TracingMetrics } from './metrics.ts'
import type { EndedSpan } from './otlp/ended-span.ts'
import type { Exporter } from './otlp/exporter.ts'
import { SpanBatch, type SealedBatch } from './otlp/span-batch.ts'

/** Sixteen times OpenTelemetry's default: with a collector on the same host each post takes both of them from other work, so a busy server makes few. */
const MOST_SPANS_OF_A_BATCH = 8192
/** Half of what a gRPC server takes by default; the OpenTelemetry Collector takes 20 MiB over HTTP. */
const MOST_BYTES_OF_A_BATCH = 2 ** 21
/** A server that stops does not wait longer for its collector. */
const LAST_POST_MS = 2000

export interface OutboxOptions {
  readonly exporter: Exporter
  /** most spans that wait */
  readonly queue: number
  /** how long a span waits at most before it is posted */
  readonly intervalMs: number
  readonly endpoint: string
  readonly log: Logger
  readonly metrics: TracingMetrics
}

export class Outbox {
  readonly #options: OutboxOptions
  readonly #open = new SpanBatch()
  readonly #full: SealedBatch[] = []
  /** spans of the full batches */
  #inFull = 0
  #isPosting = false
  #isFailing = false
  #timer: NodeJS.Timeout | undefined
  #whenEmpty: (() => void) | undefined

  constructor (options: OutboxOptions) {
    this.#options = options
  }

  /** Loses the span if too many wait. */
  add (span: EndedSpan): void {
    if (this.#isFull) return
    this.#open.add(span)
    this.#post()
  }

  /** The same of a span without children. */
  addSingle (shape: SpanShape, span: SingleSpan): void {
    if (this.#isFull) return
    this.#open.addSingle(shape, span)
    this.#post()
  }

  /** Posts what waits, for a short while. */
  async close (): Promise<void> {
    let late: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#whenEmpty = resolve
      late = setTimeout(resolve, LAST_POST_MS)
      this.#postAll()
    })
    clearTimeout(late)
  }

  get #isFull (): boolean { return this.#inFull + this.#open.spans >= this.#options.queue }

  /** A full batch at once, others after a while. */
  #post (): void {
    if (this.#open.spans >= Math.min(MOST_SPANS_OF_A_BATCH, this.#options.queue) || this.#open.bytes >= MOST_BYTES_OF_A_BATCH) this.#seal()
    if (this.#isPosting) return
    if (this.#full.length > 0) this.#postNext()
    else this.#postLater()
  }

  #seal (): void {
    if (this.#open.spans === 0) return
    const batch = this.#open.seal()
    this.#full.push(batch)
    this.#inFull += batch.spans
  }

  #postAll (): void {
    this.#seal()
    if (!this.#isPosting) this.#postNext()
  }

  #postNext (): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const batch = this.#full.shift()
    if (batch === undefined) return this.#whenEmpty?.()
    this.#inFull -= batch.spans
    this.#isPosting = true
    this.#options.exporter.post(batch, (reason) => {
      this.#isPosting = false
      this.#note(batch.spans, reason)
      this.#goOn()
    })
  }

  #goOn (): void {
    if (this.#full.length > 0 || this.#whenEmpty !== undefined) this.#postAll()
    else if (this.#open.spans > 0) this.#postLater()
  }

  #postLater (): void {
    this.#timer ??= setTimeout(() => { this.#postAll() }, this.#options.intervalMs).unref()
  }

  #note (spans: number, reason: string | undefined): void {
    const { endpoint, log, metrics } = this.#options
    if (reason === undefined) {
      metrics.sent(spans)
      if (this.#isFailing) log.info({ endpoint }, 'the collector takes spans again')
    } else {
      metrics.lost(spans)
      if (!this.#isFailing) log.warn({ endpoint, reason }, 'the collector does not take spans; they are lost until it does')
    }
    this.#isFailing = reason !== undefined
  }
}
