// What a template depends on. VMs of one shape can be made of one template.
import { createHash } from 'node:crypto'
import type { VmNetwork } from '../../../core/library/hypervisor.ts'
import type { BaseContext } from '../context.ts'
import { driverOf, vmSpecOf } from '../operations/launch.ts'
import type { InstanceSpec } from '../model/record.ts'
import type { Shape, VmShape } from './contract.ts'
import { PLACEHOLDER_BYTES } from './placeholders.ts'

/** A template depends on whether a VM has a network, and not on which one. */
const ANY_NETWORK: VmNetwork = { namespace: '/', tap: 'any', mac: '02:00:00:00:00:00' }

/** Undefined when the driver makes no memory images. */
export async function shapeOf (context: BaseContext, wanted: VmShape & Partial<InstanceSpec>): Promise<Shape | undefined> {
  const { hypervisor, vcpus, memoryBytes, hotplugBytes, kernelHeaders, network } = wanted
  // Plugged-in memory is in the state and not in the memory file, so that a clone would have to read all of it.
  if (hotplugBytes !== undefined || (wanted.overlayBytes ?? 0) > PLACEHOLDER_BYTES || context.parts.some((part) => part.mustBoot?.(wanted) === true)) return undefined
  const enabled = network?.enabled === true
  const shape = { hypervisor, vcpus, memoryBytes, ...(kernelHeaders === undefined ? {} : { kernelHeaders }), network: { enabled } }
  const spec = hiddenSpec(shape, 0)
  const { imaging } = driverOf(context, { spec })
  if (imaging === undefined) return undefined
  const { version } = await context.guest.system()
  const key = await imaging.key(await vmSpecOf(context, { id: 'template', slot: 0, spec }, { rootfs: '/' }, { ...(enabled ? { network: ANY_NETWORK } : {}) }))
  return { ...shape, key: createHash('sha256').update([hypervisor, key, version, ...(kernelHeaders === undefined ? [] : [kernelHeaders])].join('\n')).digest('hex').slice(0, 32) }
}

/** The spec of a VM of the server's own. */
export function hiddenSpec ({ hypervisor, vcpus, memoryBytes, kernelHeaders, network }: VmShape, overlayBytes: number): InstanceSpec {
  return {
    hypervisor,
    vcpus,
    memoryBytes,
    overlayBytes,
    network: { enabled: network?.enabled === true },
    env: {},
    tags: {},
    skipGuestAgent: false,
    skipKernelHeaders: kernelHeaders === undefined,
    ...(kernelHeaders === undefined ? {} : { kernelHeaders })
  }
}
