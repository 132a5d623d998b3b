// What the Firecracker driver needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import { restVmmConfig } from '../../core/library/vmm/settings.ts'
import type { PluginManifest } from '../../core/plugins/manifest.ts'
import { DRIVER_ERRORS } from '../../core/library/vmm/errors.ts'

export const HypervisorFirecrackerConfig = Type.Object({
  ...restVmmConfig('Firecracker', 'firecracker').properties,
  jailer: Type.String({ default: 'jailer', minLength: 1, description: 'Its jailer, as a command, which is looked for beside Firecracker first, or a path; off: none. It is used where the server is root' })
}, { additionalProperties: false })

export type HypervisorFirecrackerConfig = Static<typeof HypervisorFirecrackerConfig>

export const manifest = {
  id: 'hypervisor-firecracker',
  provides: [],
  requires: ['commands', 'log', 'server'],
  // A server without VMs has no guest, and this plugin has nothing to do there.
  optional: ['guest'],
  fills: { slot: 'hypervisors', name: 'firecracker' },
  errors: [...DRIVER_ERRORS],
  config: HypervisorFirecrackerConfig
} as const satisfies PluginManifest<typeof HypervisorFirecrackerConfig>
