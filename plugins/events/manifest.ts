// What the events plugin needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import { Duration, LongDuration } from '../../core/config/schema.ts'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'

export const EventsConfig = Type.Object({
  maxEvents: Type.Integer({ default: 50_000, minimum: 100, maximum: 10_000_000, description: 'Changes that are kept for readers who come back; about a tenth more for a short while' }),
  maxAge: LongDuration('24h', 'how long they are kept at most'),
  maxStreams: Type.Integer({ default: 200, minimum: 1, maximum: 10_000, description: 'Streams of events that may be open at the same time; one key may have a quarter of them' }),
  heartbeat: Duration('15s', 'after so long a stream tells that it is alive, and whether its key still is valid is looked at')
}, { additionalProperties: false })

export type EventsConfig = Static<typeof EventsConfig>

export const manifest = {
  id: 'events',
  provides: ['journal', 'eventFeed'],
  requires: ['log', 'database', 'metrics', 'server', 'apiKeys'],
  tags: [{ name: 'events', description: 'What changes, as a stream', place: 110 }],
  config: EventsConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof EventsConfig>

export type Deps = DepsOf<typeof manifest>
