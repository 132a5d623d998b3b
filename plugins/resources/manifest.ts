// What the resources plugin needs and offers.
import type { PluginManifest } from '../../core/plugins/manifest.ts'
import { ResourcesConfig } from './config.ts'
import { InsufficientResources } from './errors.ts'

export const manifest = {
  id: 'resources',
  provides: ['resources'],
  requires: ['log', 'database', 'server'],
  tags: [{ name: 'resources', description: 'What the host has, and who has it', place: 130 }],
  optional: ['network', 'gpus'],
  errors: [InsufficientResources],
  config: ResourcesConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof ResourcesConfig>
