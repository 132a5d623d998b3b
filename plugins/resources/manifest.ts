// What the resources plugin needs and offers.
import type { PluginManifest } from '../../core/plugins/manifest.ts'
import { ResourcesConfig } from './config.ts'
import type { Resources } from './service.ts'

declare module '../../core/plugins/manifest.ts' {
  interface Cradle {
    /** this plugin's own service; others use what contract.ts declares */
    readonly resourcesService: Resources
  }
}

export const manifest = {
  id: 'resources',
  provides: ['resources', 'resourcesService'],
  requires: ['log', 'database', 'server'],
  optional: ['network', 'gpus'],
  config: ResourcesConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof ResourcesConfig>
