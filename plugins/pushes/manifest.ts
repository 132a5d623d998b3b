// What the pushes plugin needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import { Duration } from '../../core/config/schema.ts'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'

export const PushesConfig = Type.Object({
  concurrency: Type.Integer({ default: 2, minimum: 1, maximum: 64, description: 'Images that are pushed at the same time; others wait' }),
  maxPushes: Type.Integer({ default: 1000, minimum: 1, maximum: 100_000, description: 'Pushes that are not over' }),
  maxPushesPerKey: Type.Integer({ default: 100, minimum: 1, maximum: 100_000, description: 'How many of them may be those of one API key' }),
  pushTimeout: Duration('1h', 'longest time for each step of a push'),
  keepFinished: Type.Integer({ default: 1000, minimum: 1, maximum: 100_000, description: 'Finished pushes that GET /pushes still shows; older ones are forgotten' })
}, { additionalProperties: false })

export type PushesConfig = Static<typeof PushesConfig>

export const manifest = {
  id: 'pushes',
  provides: [],
  requires: ['log', 'database', 'jobs', 'commands', 'metrics', 'server', 'apiKeys', 'imageSources'],
  optional: ['registry', 'journal'],
  scopes: ['push:read', 'push:write'],
  tags: [{ name: 'pushes', description: 'Images on their way to other registries', place: 100 }],
  config: PushesConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof PushesConfig>

export type Deps = DepsOf<typeof manifest>
