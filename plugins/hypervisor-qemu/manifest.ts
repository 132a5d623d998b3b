// What the QEMU driver needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import type { PluginManifest } from '../../core/plugins/manifest.ts'

export const HypervisorQemuConfig = Type.Object({
  binary: Type.String({ default: 'qemu-system-x86_64', minLength: 1, description: 'QEMU, as a command or a path' }),
  accelerator: Type.Unsafe<'auto' | 'kvm' | 'tcg'>({ type: 'string', enum: ['auto', 'kvm', 'tcg'], default: 'auto', description: 'How guest instructions run: kvm, emulation (tcg), or KVM where it boots the guests\' kernel' }),
  cpuModel: Type.Optional(Type.String({ minLength: 1, description: 'QEMU CPU model; without one, host under KVM and x86-64-v3 under emulation' })),
  translationCacheMib: Type.Integer({ default: 256, minimum: 16, maximum: 2048, description: 'Most memory for translated code of one emulated VM, MiB' }),
  probeTimeoutMs: Type.Integer({ default: 5000, minimum: 100, maximum: 60_000, description: 'Time for the kernel to boot when KVM is tried' }),
  launchTimeoutMs: Type.Integer({ default: 15_000, minimum: 100, maximum: 300_000, description: 'Time for a new QEMU to answer' }),
  heartbeatIntervalMs: Type.Integer({ default: 500, minimum: 10, maximum: 60_000, description: 'Pause between two questions after a VM\'s state' }),
  heartbeatDeadlineMs: Type.Integer({ default: 1000, minimum: 10, maximum: 60_000, description: 'Silence after which a VM counts as hung' })
}, { additionalProperties: false })

export type HypervisorQemuConfig = Static<typeof HypervisorQemuConfig>

export const manifest = {
  id: 'hypervisor-qemu',
  provides: [],
  requires: ['commands', 'guest', 'log', 'server'],
  fills: { slot: 'hypervisors', name: 'qemu' },
  config: HypervisorQemuConfig
} as const satisfies PluginManifest<typeof HypervisorQemuConfig>
