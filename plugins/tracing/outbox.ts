// The spans that wait to be posted, of which the collector gets one batch at a time. It logs once when the collector does not take them, and once when it does again.
import type { Logger } from '../../core/contracts/services.ts'
import type { TracingMetrics } from './metrics.ts'
import type { EndedSpan } from './otlp/ended-span.ts'
import type { Exporter } from './otlp/exporter.ts'
import { SpanBatch, type SealedBatch, type SpanSource } from './otlp/span-batch.ts'

/** The same as OpenTelemetry's default. */
const MOST_SPANS_OF_A_BATCH = 512
/** Collectors take some megabytes. */
const MOST_BYTES_OF_A_BATCH = 2 ** 20
/** A server that stops does not wait longer for its collector. */
const LAST_POST_MS = 2000

export interface OutboxOptions {
  readonly source: SpanSource
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
  readonly #open: SpanBatch
  readonly #full: SealedBatch[] = []
  /** spans of the full batches */
  #inFull = 0
  #isPosting = false
  #isFailing = false
  #timer: NodeJS.Timeout | undefined
  #whenEmpty: (() => void) | undefined

  constructor (options: OutboxOptions) {
    this.#options = options
    this.#open = new SpanBatch(options.source)
  }

  /** Loses the span if too many wait. */
  add (span: EndedSpan): void {
    const { queue } = this.#options
    if (this.#inFull + this.#open.spans >= queue) return
    this.#open.add(span)
    if (this.#open.spans >= Math.min(MOST_SPANS_OF_A_BATCH, queue) || this.#open.bytes >= MOST_BYTES_OF_A_BATCH) this.#seal()
    if (this.#isPosting) return
    if (this.#full.length > 0) this.#postNext()
    else this.#postLater()
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
