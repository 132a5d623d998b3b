// What the QEMU driver needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import { Duration } from '../../core/config/schema.ts'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'
import { DRIVER_ERRORS } from '../../core/library/vmm/errors.ts'
import { QmpClosed, QmpTimeout } from './errors.ts'

export const HypervisorQemuConfig = Type.Object({
  binary: Type.String({ default: 'qemu-system-x86_64', minLength: 1, description: 'QEMU, as a command or a path' }),
  accelerator: Type.Unsafe<'auto' | 'kvm' | 'tcg'>({ type: 'string', enum: ['auto', 'kvm', 'tcg'], default: 'auto', description: 'How guest instructions run: kvm, emulation (tcg), or KVM where it boots the guests\' kernel' }),
  cpuModel: Type.Optional(Type.String({ minLength: 1, description: 'QEMU CPU model; without one, host under KVM and x86-64-v3 under emulation' })),
  translationCacheMib: Type.Integer({ default: 256, minimum: 16, maximum: 2048, description: 'Most memory for translated code of one emulated VM, MiB' }),
  probeTimeout: Duration('5s', 'Time for the kernel to boot when KVM is tried'),
  launchTimeout: Duration('15s', 'Time for a new QEMU to answer'),
  imageTimeout: Duration('2m', 'Most time for one step of saving a VM to a memory image or restoring it'),
  heartbeatInterval: Duration('500ms', 'Pause between two questions after a VM\'s state'),
  heartbeatDeadline: Duration('1s', 'Silence after which a VM counts as hung')
}, { additionalProperties: false })

export type HypervisorQemuConfig = Static<typeof HypervisorQemuConfig>

export const manifest = {
  id: 'hypervisor-qemu',
  provides: ['qemu'],
  requires: ['commands', 'guest', 'log', 'server'],
  fills: { slot: 'hypervisors', name: 'qemu' },
  errors: [...DRIVER_ERRORS, QmpClosed, QmpTimeout],
  hostPackages: [{ name: 'qemu-system-x86', commands: ['qemu-system-x86_64'], oldest: '7.2.0', need: 'server', use: 'VMs' }],
  config: HypervisorQemuConfig
} as const satisfies PluginManifest<typeof HypervisorQemuConfig>

export type Deps = DepsOf<typeof manifest>
