// What the registry plugin needs and offers, and its settings.
import { Type } from 'typebox'
import { Duration, Size } from '../../core/config/schema.ts'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'

const RegistryConfig = Type.Object({
  hosts: Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { default: [], description: 'Other names under which clients reach this server, as host or host:port; an image reference with one of them is pulled from here' }),
  tokenTtl: Duration('5m', 'how long a token of /v2/token is valid'),
  maxUpload: Size('64GB', 'most that the unfinished uploads of one key, or of one build, may have together')
}, { additionalProperties: false })

export const manifest = {
  id: 'registry',
  provides: ['registry'],
  requires: ['log', 'events', 'commands', 'disk', 'apiKeys', 'server', 'processes'],
  emits: ['registry.pushed'],
  scopes: ['image:read', 'image:write', 'image:delete'],
  hostPackages: [{ name: 'docker-registry', commands: ['docker-registry'], oldest: '2.8.2', need: 'server', use: 'the built-in registry' }],
  config: RegistryConfig
} as const satisfies PluginManifest<typeof RegistryConfig>

export type Deps = DepsOf<typeof manifest>
