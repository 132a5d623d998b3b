// Sends spans to a collector: the SDK of OpenTelemetry with a bounded queue, and one line in the log when the collector does not accept them.
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BasicTracerProvider, BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace-base'
import { durationMs } from '../../core/config/quantities.ts'
import { readHeaders } from './headers.ts'
import type { Deps, TracingConfig } from './manifest.ts'
import { createTracingMetrics } from './metrics.ts'
import { createTraceMaker } from './spans.ts'
import { WatchedExporter } from './watched-exporter.ts'

export interface Exporting {
  /** Makes no more spans, and sends the waiting ones, for a short while. */
  close (): Promise<void>
}

const BATCH = 512
/** A server that stops does not wait longer for its collector. */
const LAST_POST_MS = 2000

export async function startExporting ({ log, metrics, server, tracing }: Deps, config: TracingConfig & { readonly endpoint: string }): Promise<Exporting> {
  const { endpoint, sample, service, headersFile, queue } = config
  const headers = headersFile === undefined ? {} : await readHeaders(headersFile)
  const timeoutMs = durationMs(config.timeout)
  const exporter = new WatchedExporter(
    // Two: an aborted export may not have ended when the next one begins.
    new OTLPTraceExporter({ url: endpoint, headers, timeoutMillis: timeoutMs, concurrencyLimit: 2 }),
    { log: log.child({ plugin: 'tracing' }), endpoint, metrics: createTracingMetrics(metrics) })
  const processor = new BatchSpanProcessor(exporter, {
    maxQueueSize: queue,
    maxExportBatchSize: Math.min(BATCH, queue),
    scheduledDelayMillis: durationMs(config.interval),
    exportTimeoutMillis: timeoutMs * 2
  })
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': service, 'service.version': server.version, 'service.instance.id': server.hostId }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sample) }),
    spanProcessors: [processor]
  })
  const takeBack = tracing.use(createTraceMaker(provider.getTracer(service, server.version)))
  return {
    async close () {
      takeBack()
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => { timer = setTimeout(resolve, LAST_POST_MS) })
      // The exporter has already reported their outcome.
      await Promise.race([provider.shutdown().catch(() => {}), late])
      clearTimeout(timer)
    }
  }
}
