// What the volumes plugin needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import { Size } from '../../core/config/schema.ts'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'
import { Ambiguous, NotFound } from '../../core/errors/common.ts'
import { VolumeDamaged, VolumeInUse } from './errors.ts'

export const VolumesConfig = Type.Object({
  maxSize: Size('1024GB', 'Largest volume; it takes only the space that is written'),
  maxArchiveEntries: Type.Integer({ minimum: 1, default: 500_000, description: 'Most files, folders and links of an archive that a volume is made of' }),
  archiveConcurrency: Type.Integer({ minimum: 1, maximum: 64, default: 3, description: 'Archives that are unpacked at a time, those of one key in all but one of these turns; others wait' })
}, { additionalProperties: false })

export type VolumesConfig = Static<typeof VolumesConfig>

export const manifest = {
  id: 'volumes',
  provides: ['volumes'],
  requires: ['log', 'database', 'jobs', 'commands', 'disk', 'metrics', 'server'],
  optional: ['resources', 'journal'],
  scopes: ['volume:read', 'volume:write', 'volume:delete'],
  tags: [{ name: 'volumes', description: 'Disks that outlive instances', place: 70 }],
  errors: [NotFound, Ambiguous, VolumeInUse, VolumeDamaged],
  config: VolumesConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof VolumesConfig>

export type Deps = DepsOf<typeof manifest>
