// Posts batches of spans to the collector, by OpenTelemetry's exporter over HTTP: connection, time limits, repetition when the collector asks for it.
import { ExportResultCode, type ExportResult } from '@opentelemetry/core'
import { createOtlpHttpExportDelegate, httpAgentFactoryFromOptions } from '@opentelemetry/otlp-exporter-base/node-http'
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import { bodiesOf, type SpanSource } from './body.ts'
import type { SealedBatch } from './span-batch.ts'

const COMPONENT = 'otlp_http_span_exporter'
const LONGEST_REASON = 200

export interface ExporterOptions {
  readonly source: SpanSource
  readonly endpoint: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

export interface Exporter {
  /** @param done called once, with the reason if the collector has not taken it: the status of its answer or the connection's error, and nothing of the answer's text */
  post (batch: SealedBatch, done: (reason: string | undefined) => void): void
}

export function createExporter ({ source, endpoint, headers, timeoutMs }: ExporterOptions): Exporter {
  const delegate = createOtlpHttpExportDelegate<SealedBatch, unknown>({
    url: endpoint,
    headers: async () => ({ ...headers, 'Content-Type': 'application/x-protobuf' }),
    timeoutMillis: timeoutMs,
    // Two: an aborted export may not have ended when the next one begins.
    concurrencyLimit: 2,
    compression: 'none',
    agentFactory: httpAgentFactoryFromOptions({ keepAlive: true })
  }, {
    serializeRequest: bodiesOf(source),
    deserializeResponse: (answer) => ProtobufTraceSerializer.deserializeResponse(answer)
  }, COMPONENT, { name: 'span', countItems: ({ spans }) => spans }, undefined)
  return {
    post (batch, done) {
      delegate.export(batch, (result) => { done(reasonOf(result)) })
    }
  }
}

function reasonOf ({ code, error }: ExportResult): string | undefined {
  if (code === ExportResultCode.SUCCESS) return undefined
  if (error === undefined) return 'unknown'
  const status = 'code' in error && typeof error.code === 'number' ? `status ${error.code}: ` : ''
  return `${status}${error.message}`.slice(0, LONGEST_REASON)
}
