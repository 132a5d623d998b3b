// What the builds plugin needs and offers.
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'
import { BuildsConfig } from './config.ts'

export const manifest = {
  id: 'builds',
  provides: [],
  requires: ['log', 'database', 'metrics', 'server', 'disk', 'apiKeys', 'images', 'volumes'],
  optional: ['network', 'egress', 'journal'],
  listens: ['registry.pushed'],
  scopes: ['build:read', 'build:write', 'build:delete', 'build:admin', 'image:read'],
  tags: [
    { name: 'builds', description: 'Images that are built from a source', place: 50 },
    { name: 'builders', description: 'Cache disks that builds share', place: 60 }
  ],
  config: BuildsConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof BuildsConfig>

export type Deps = DepsOf<typeof manifest>
