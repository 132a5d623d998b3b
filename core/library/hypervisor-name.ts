// How a hypervisor is named in requests and settings: as its driver fills the slot `hypervisors`. Which ones there are is known only while a server runs.
import { Type } from 'typebox'

/** Those that Berth has, or will have, a driver for: a plugin `hypervisor-<name>` each. Others come with plugins of others, and are named nowhere. */
export const HYPERVISORS = ['cloud-hypervisor', 'firecracker', 'qemu', 'qemu-microvm', 'vz'] as const

export const HypervisorName = (options: { description?: string, default?: string } = {}) => Type.String({
  pattern: '^[a-z][a-z0-9-]{0,31}$',
  rule: 'must be the name of a hypervisor, as in qemu',
  ...options
})
