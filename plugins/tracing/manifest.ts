// What the tracing plugin needs, and its settings.
import { Type, type Static } from 'typebox'
import { Duration } from '../../core/config/schema.ts'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'

export const TracingConfig = Type.Object({
  endpoint: Type.Optional(Type.String({
    pattern: '^https?://[A-Za-z0-9.:[\\]_-]{1,255}(/[A-Za-z0-9._~/-]{0,1000})?$',
    rule: 'must be a URL such as http://127.0.0.1:4318/v1/traces',
    description: 'Where traces are posted to, by OTLP over HTTP (protobuf); without it there are none, and nothing of OpenTelemetry is loaded'
  })),
  sample: Type.Number({ default: 1, minimum: 0, maximum: 1, description: 'Share of the traces that are taken; of those that go on with a caller\'s, the caller says' }),
  service: Type.String({ default: 'berth', pattern: '^[\\x20-\\x7e]{1,100}$', rule: 'must have 1 to 100 printable characters', description: 'service.name of what is posted' }),
  headersFile: Type.Optional(Type.String({ pattern: '^/', rule: 'must be an absolute path', description: 'File of headers for the endpoint, one "Name: value" a line, which others must not be able to read' })),
  queue: Type.Integer({ default: 32768, minimum: 1, maximum: 100_000, description: 'Most spans that wait to be posted; what comes when it is full is lost' }),
  interval: Duration('2s', 'how long a span waits at most before it is posted'),
  timeout: Duration('5s', 'how long the endpoint may take to answer')
}, { additionalProperties: false })

export type TracingConfig = Static<typeof TracingConfig>

export const manifest = {
  id: 'tracing',
  provides: [],
  requires: ['log', 'metrics', 'server', 'tracing'],
  config: TracingConfig
} as const satisfies PluginManifest<typeof TracingConfig>

export type Deps = DepsOf<typeof manifest>
