// What a VM must have in common with a memory image to be restored from it, and the key that is computed from that.
import type { VmSpec } from '../../core/library/hypervisor.ts'
import { digest, hostCpu, type Shape } from '../../core/library/vmm/shape.ts'
import { buildArgs, hotplugMibOf, memoryMibOf, type ArgsOptions } from './args.ts'
import { machineOf, q35 } from './board.ts'
import { NETWORK_DEVICE } from './network.ts'

export const IMAGE_VERSION = 1

export interface ShapeOptions extends ArgsOptions {
  readonly vmmVersion: string
}

/** The parts of a VM that a saved state depends on. */
export async function shapeOf (spec: VmSpec, options: ShapeOptions): Promise<Shape> {
  const board = options.board ?? q35
  const args = buildArgs({ ...spec, disks: [], memory: undefined, network: undefined }, options)
  const devices = args.filter((_, index) => args[index - 1] === '-device')
  return {
    vmm: `QEMU ${options.vmmVersion}`,
    accelerator: options.accelerator,
    cpu: options.cpuModel + await processorBehind(options.cpuModel),
    machine: machineOf(board),
    devices: digest(devices),
    // The TAP and the MAC are no part of the shape: the state contains the guest's own MAC.
    ...spec.network === undefined ? {} : { network: `${board.model('virtio-net')},${NETWORK_DEVICE}` },
    vcpus: String(spec.vcpus),
    memory: hotplugMibOf(spec) === 0 ? `${memoryMibOf(spec)} MiB` : `${memoryMibOf(spec)} MiB and ${hotplugMibOf(spec)} MiB plugged in`,
    // Disks with a unit come and go. A restored VM must get those that the captured one had, and QEMU refuses the state otherwise.
    disks: spec.disks.filter(({ unit }) => unit === undefined).map(({ id, readonly }) => `${id} (${readonly ? 'read-only' : 'writable'})`).join(', ')
  }
}

/** A model that passes the host's processor through differs between kinds of hosts. */
async function processorBehind (model: string): Promise<string> {
  return /^(host|max)\b/.test(model) ? ` (${await hostCpu()})` : ''
}
