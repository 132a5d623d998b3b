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

/** The limit of a template's own VM where there has to be one: as good as none. Its clones have their own. */
const AMPLE_BPS = 2 ** 30

/** Undefined when the driver makes no memory images. */
export async function shapeOf (context: BaseContext, wanted: VmShape & Partial<InstanceSpec>): Promise<Shape | undefined> {
  const { hypervisor, vcpus, memoryBytes, hotplugBytes, kernelHeaders, network, diskIoBps, limitsDisks } = wanted
  // Plugged-in memory is in the state and not in the memory file, so that a clone would have to read all of it.
  if (hotplugBytes !== undefined || (wanted.overlayBytes ?? 0) > PLACEHOLDER_BYTES || context.parts.some((part) => part.mustBoot?.(wanted) === true)) return undefined
  const enabled = network?.enabled === true
  const unlimited: VmShape = { hypervisor, vcpus, memoryBytes, ...(kernelHeaders === undefined ? {} : { kernelHeaders }), network: { enabled } }
  const { imaging } = driverOf(context, { spec: hiddenSpec(unlimited, 0) })
  if (imaging === undefined) return undefined
  const { version } = await context.guest.system()
  const keyOf = async (shape: VmShape): Promise<string> =>
    await imaging.key(await vmSpecOf(context, { id: 'template', slot: 0, spec: hiddenSpec(shape, 0) }, { rootfs: '/' }, { ...(enabled ? { network: ANY_NETWORK } : {}) }))
  const limited: VmShape = { ...unlimited, limitsDisks: true }
  const plainKey = await keyOf(unlimited)
  const key = diskIoBps !== undefined || limitsDisks === true ? await keyOf(limited) : plainKey
  // A driver that can change the limit of a VM makes no difference: then both kinds share a template.
  const shape = key === plainKey ? unlimited : limited
  return { ...shape, key: createHash('sha256').update([hypervisor, key, version, ...(kernelHeaders === undefined ? [] : [kernelHeaders])].join('\n')).digest('hex').slice(0, 32) }
}

/** The spec of a VM of the server's own. */
export function hiddenSpec ({ hypervisor, vcpus, memoryBytes, kernelHeaders, network, limitsDisks }: VmShape, overlayBytes: number): InstanceSpec {
  return {
    hypervisor,
    vcpus,
    memoryBytes,
    overlayBytes,
    ...(limitsDisks === true ? { diskIoBps: AMPLE_BPS } : {}),
    network: { enabled: network?.enabled === true },
    env: {},
    tags: {},
    skipGuestAgent: false,
    skipKernelHeaders: kernelHeaders === undefined,
    ...(kernelHeaders === undefined ? {} : { kernelHeaders })
  }
}
