// Passes spans to the exporter of OpenTelemetry, counts the outcomes, and logs once when the collector does not accept them, and once when it does again.
import { ExportResultCode, type ExportResult } from '@opentelemetry/core'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base'
import type { Logger } from '../../core/contracts/services.ts'
import type { TracingMetrics } from './metrics.ts'

export interface WatchedOptions {
  readonly log: Logger
  readonly endpoint: string
  readonly metrics: TracingMetrics
}

export class WatchedExporter implements SpanExporter {
  readonly #exporter: SpanExporter
  readonly #options: WatchedOptions
  #isFailing = false

  constructor (exporter: SpanExporter, options: WatchedOptions) {
    this.#exporter = exporter
    this.#options = options
  }

  export (spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.#exporter.export(spans, (result) => {
      this.#note(result, spans.length)
      done(result)
    })
  }

  async shutdown (): Promise<void> {
    await this.#exporter.shutdown()
  }

  async forceFlush (): Promise<void> {
    await this.#exporter.forceFlush?.()
  }

  #note ({ code, error }: ExportResult, spans: number): void {
    const { log, endpoint, metrics } = this.#options
    if (code === ExportResultCode.SUCCESS) {
      metrics.sent(spans)
      if (this.#isFailing) log.info({ endpoint }, 'the collector takes spans again')
      this.#isFailing = false
      return
    }
    metrics.lost(spans)
    // Only the status of its answer: an error page may contain anything, and be of any size.
    if (!this.#isFailing) log.warn({ endpoint, reason: reasonOf(error) }, 'the collector does not take spans; they are lost until it does')
    this.#isFailing = true
  }
}

const LONGEST_REASON = 200

function reasonOf (error: Error | undefined): string {
  if (error === undefined) return 'unknown'
  const status = 'code' in error && typeof error.code === 'number' ? `status ${error.code}: ` : ''
  return `${status}${error.message}`.slice(0, LONGEST_REASON)
}
