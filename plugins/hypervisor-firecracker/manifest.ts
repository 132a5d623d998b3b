// What the Firecracker driver needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import { Duration } from '../../core/config/schema.ts'
import type { PluginManifest } from '../../core/plugins/manifest.ts'
import { DRIVER_ERRORS } from '../../core/library/vmm/errors.ts'

export const HypervisorFirecrackerConfig = Type.Object({
  binary: Type.String({ default: 'firecracker', minLength: 1, description: 'Firecracker, as a command or a path' }),
  probeTimeout: Duration('5s', 'Time for the kernel to boot when KVM is tried'),
  launchTimeout: Duration('15s', 'Time for a new Firecracker to answer'),
  guestTimeout: Duration('1m', 'Time for a guest to come up so far that its agent can be reached'),
  imageTimeout: Duration('2m', 'Most time for saving a VM to a memory image or restoring it'),
  heartbeatInterval: Duration('500ms', 'Pause between two questions after a VM\'s state'),
  heartbeatDeadline: Duration('1s', 'Silence after which a VM counts as hung')
}, { additionalProperties: false })

export type HypervisorFirecrackerConfig = Static<typeof HypervisorFirecrackerConfig>

export const manifest = {
  id: 'hypervisor-firecracker',
  provides: [],
  requires: ['commands', 'log', 'server'],
  // A server without VMs has none, and this plugin nothing to do.
  optional: ['guest'],
  fills: { slot: 'hypervisors', name: 'firecracker' },
  errors: [...DRIVER_ERRORS],
  config: HypervisorFirecrackerConfig
} as const satisfies PluginManifest<typeof HypervisorFirecrackerConfig>
