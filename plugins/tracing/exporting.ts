// Takes traces for a collector.
import { durationMs } from '../../core/config/quantities.ts'
import { readHeaders } from './headers.ts'
import type { Deps, TracingConfig } from './manifest.ts'
import { createTracingMetrics } from './metrics.ts'
import { createPostingThread } from './otlp/posting.ts'
import { Outbox } from './outbox.ts'
import { createTraceMaker } from './spans.ts'

export interface Exporting {
  /** Makes no more spans, and sends the waiting ones, for a short while. */
  close (): Promise<void>
}

export async function startExporting ({ log, metrics, server, tracing }: Deps, config: TracingConfig & { readonly endpoint: string }): Promise<Exporting> {
  const { endpoint, sample, service, headersFile, queue } = config
  const headers = headersFile === undefined ? {} : await readHeaders(headersFile)
  const exporter = createPostingThread({
    source: {
      resource: { 'service.name': service, 'service.version': server.version, 'service.instance.id': server.hostId },
      scope: { name: service, version: server.version }
    },
    endpoint,
    headers,
    timeoutMs: durationMs(config.timeout)
  })
  const outbox = new Outbox({
    exporter,
    queue,
    intervalMs: durationMs(config.interval),
    endpoint,
    log: log.child({ plugin: 'tracing' }),
    metrics: createTracingMetrics(metrics)
  })
  const takeBack = tracing.use(createTraceMaker(outbox, sample))
  return {
    async close () {
      takeBack()
      await outbox.close()
      await exporter.close()
    }
  }
}
