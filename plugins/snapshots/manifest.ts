// What the snapshots plugin needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import { Duration } from '../../core/config/schema.ts'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'

export const SnapshotsConfig = Type.Object({
  scheduleInterval: Duration('1m', 'how often it is looked at which scheduled snapshots are due, and which have had their time')
}, { additionalProperties: false })

export type SnapshotsConfig = Static<typeof SnapshotsConfig>

export const manifest = {
  id: 'snapshots',
  provides: [],
  requires: ['log', 'database', 'jobs', 'commands', 'disk', 'server', 'images', 'instanceCopies'],
  optional: ['journal'],
  scopes: ['snapshot:read', 'snapshot:write', 'snapshot:delete', 'instance:write'],
  tags: [{ name: 'snapshots', description: 'States of instances that are kept, and schedules that keep them', place: 30 }],
  config: SnapshotsConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof SnapshotsConfig>

export type Deps = DepsOf<typeof manifest>
