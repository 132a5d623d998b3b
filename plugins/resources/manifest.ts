// What the resources plugin needs and offers.
import type { PluginManifest } from '../../core/plugins/manifest.ts'
import { ResourcesConfig } from './config.ts'

export const manifest = {
  id: 'resources',
  provides: ['resources'],
  requires: ['log', 'database', 'server'],
  optional: ['network', 'gpus'],
  config: ResourcesConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof ResourcesConfig>
