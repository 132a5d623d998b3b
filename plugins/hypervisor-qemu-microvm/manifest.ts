// What the driver for QEMU's board microvm needs and offers. Its settings are those of hypervisor-qemu.
import { Type } from 'typebox'
import type { PluginManifest } from '../../core/plugins/manifest.ts'
import { DRIVER_ERRORS } from '../../core/library/vmm/errors.ts'

const HypervisorQemuMicrovmConfig = Type.Object({}, { additionalProperties: false })

export const manifest = {
  id: 'hypervisor-qemu-microvm',
  provides: [],
  requires: [],
  optional: ['qemu'],
  fills: { slot: 'hypervisors', name: 'qemu-microvm' },
  errors: [...DRIVER_ERRORS],
  config: HypervisorQemuMicrovmConfig
} as const satisfies PluginManifest<typeof HypervisorQemuMicrovmConfig>
