// What all parts of an instance give its VM together.
import type { VmSpec } from '../../../core/library/hypervisor.ts'
import type { VmShare } from '../contract.ts'

export type Connection = Required<Omit<VmShare, 'network'>> & Pick<VmSpec, 'network'>
