// The name of a hypervisor in requests and settings: the name under which its driver fills the slot `hypervisors`. Only a running server knows which ones exist.
import { Type } from 'typebox'

export const HypervisorName = (options: { description?: string, default?: string } = {}) => Type.String({
  pattern: '^[a-z][a-z0-9-]{0,31}$',
  rule: 'must be the name of a hypervisor, as in qemu',
  ...options
})
