// The name of a hypervisor in requests and settings: the name under which its driver fills the slot `hypervisors`. Only a running server knows which ones exist.
import { Type } from 'typebox'

/** The hypervisors that Berth has, or will have, a driver for: a plugin `hypervisor-<name>` each. Third parties' plugins may add others, which are not listed anywhere. */
export const HYPERVISORS = ['cloud-hypervisor', 'firecracker', 'qemu', 'qemu-microvm', 'vz'] as const

export const HypervisorName = (options: { description?: string, default?: string } = {}) => Type.String({
  pattern: '^[a-z][a-z0-9-]{0,31}$',
  rule: 'must be the name of a hypervisor, as in qemu',
  ...options
})
