// What the devices plugin needs and offers. It has no settings.
import { Type } from 'typebox'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'
import { Ambiguous, NotFound } from '../../core/errors/common.ts'
import { BindFailed, DeviceInUse, NotAssignable, ProfileUsedUp, ShareFailed } from './errors.ts'

const DevicesConfig = Type.Object({}, { additionalProperties: false })

export const manifest = {
  id: 'devices',
  provides: ['gpus'],
  requires: ['log', 'database', 'commands', 'metrics', 'server'],
  optional: ['journal'],
  scopes: ['device:read', 'device:write', 'device:delete'],
  tags: [{ name: 'devices', description: 'PCI devices of the host that instances are given', place: 80 }],
  fills: { slot: 'instanceParts', name: 'devices' },
  errors: [NotFound, Ambiguous, DeviceInUse, NotAssignable, BindFailed, ShareFailed, ProfileUsedUp],
  config: DevicesConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof DevicesConfig>

export type Deps = DepsOf<typeof manifest>
