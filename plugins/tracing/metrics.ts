// The metrics of tracing itself.
import { Counter, type Registry } from 'prom-client'

export interface TracingMetrics {
  sent (spans: number): void
  lost (spans: number): void
}

export function createTracingMetrics (registry: Registry): TracingMetrics {
  const spans = new Counter({ name: 'berth_tracing_spans_total', help: 'Spans that were posted to the collector, by what became of them', labelNames: ['result'], registers: [registry] })
  for (const result of ['sent', 'lost']) spans.inc({ result }, 0)
  return {
    sent (count) { spans.inc({ result: 'sent' }, count) },
    lost (count) { spans.inc({ result: 'lost' }, count) }
  }
}
