// What a template depends on. VMs of one shape can be made of one template.
import { createHash } from 'node:crypto'
import type { HypervisorName, VmNetwork } from '../../../core/contracts/hypervisor.ts'
import type { BaseContext } from '../context.ts'
import { driverOf, vmSpecOf } from '../operations/launch.ts'
import type { InstanceSpec } from '../record.ts'

/** The part of an instance's spec that its VM is built by. */
export interface VmShape {
  readonly hypervisor: HypervisorName
  readonly vcpus: number
  readonly memoryBytes: number
  /** absent: none */
  readonly network?: { readonly enabled: boolean }
}

export interface Shape extends VmShape {
  /** changes with VMM, processor, devices, kernel, initrd and everything else that makes a template useless for a VM */
  readonly key: string
}

/** Which network a VM has is nothing to a template, but whether it has one. */
const ANY_NETWORK: VmNetwork = { namespace: '/', tap: 'any', mac: '02:00:00:00:00:00' }

/** Undefined when the driver makes no memory images. */
export async function shapeOf (context: BaseContext, { hypervisor, vcpus, memoryBytes, network }: VmShape): Promise<Shape | undefined> {
  const enabled = network?.enabled === true
  const shape = { hypervisor, vcpus, memoryBytes, network: { enabled } }
  const spec = hiddenSpec(shape, 0)
  const { imaging } = driverOf(context, { spec })
  if (imaging === undefined) return undefined
  const { version } = await context.guest.system()
  const key = await imaging.key(await vmSpecOf(context, { id: 'template', slot: null, spec }, { rootfs: '/' }, enabled ? ANY_NETWORK : undefined))
  return { ...shape, key: createHash('sha256').update(`${hypervisor}\n${key}\n${version}`).digest('hex').slice(0, 32) }
}

/** The spec of a VM that is nobody's instance. */
export function hiddenSpec ({ hypervisor, vcpus, memoryBytes, network }: VmShape, overlayBytes: number): InstanceSpec {
  return { hypervisor, vcpus, memoryBytes, overlayBytes, network: { enabled: network?.enabled === true }, env: {}, tags: {}, skipGuestAgent: false, skipKernelHeaders: false }
}
