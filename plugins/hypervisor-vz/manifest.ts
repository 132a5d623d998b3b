// What the driver for macOS needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import { Duration } from '../../core/config/schema.ts'
import { DRIVER_ERRORS } from '../../core/library/vmm/errors.ts'
import { restVmmConfig } from '../../core/library/vmm/settings.ts'
import type { PluginManifest } from '../../core/plugins/manifest.ts'

const { imageTimeout: _, ...settings } = restVmmConfig('vfkit', 'vfkit').properties

export const HypervisorVzConfig = Type.Object({
  ...settings,
  probeTimeout: Duration('5s', 'Time for the kernel to boot when vfkit is tried')
}, { additionalProperties: false })

export type HypervisorVzConfig = Static<typeof HypervisorVzConfig>

export const manifest = {
  id: 'hypervisor-vz',
  provides: [],
  requires: ['commands', 'log', 'server'],
  // A server without VMs has no guest, and this plugin has nothing to do there.
  optional: ['guest'],
  fills: { slot: 'hypervisors', name: 'vz' },
  errors: [...DRIVER_ERRORS],
  config: HypervisorVzConfig
} as const satisfies PluginManifest<typeof HypervisorVzConfig>
