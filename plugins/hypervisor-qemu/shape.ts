// What a VM must have in common with a memory image to be restored from it, and the key made of that.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { MemoryImage, VmSpec } from '../../core/library/hypervisor.ts'
import { buildArgs, hotplugMibOf, MACHINE, memoryMibOf, type ArgsOptions } from './args.ts'
import { ImageIncompatible } from './errors.ts'
import { NETWORK_DEVICE } from './network.ts'

export const IMAGE_VERSION = 1

export type Shape = MemoryImage['shape']

export interface ShapeOptions extends ArgsOptions {
  readonly vmmVersion: string
}

/** The parts of a VM that a saved state depends on. */
export async function shapeOf (spec: VmSpec, options: ShapeOptions): Promise<Shape> {
  const args = buildArgs({ ...spec, disks: [], memory: undefined, network: undefined }, options)
  const devices = args.filter((_, index) => args[index - 1] === '-device')
  return {
    vmm: `QEMU ${options.vmmVersion}`,
    accelerator: options.accelerator,
    cpu: options.cpuModel + await hostCpu(options.cpuModel),
    machine: MACHINE,
    devices: digest(devices),
    // Which TAP, and which MAC, is nothing to a state: it holds the MAC that the guest has.
    ...spec.network === undefined ? {} : { network: NETWORK_DEVICE },
    vcpus: String(spec.vcpus),
    memory: hotplugMibOf(spec) === 0 ? `${memoryMibOf(spec)} MiB` : `${memoryMibOf(spec)} MiB and ${hotplugMibOf(spec)} MiB plugged in`,
    // Those with a unit come and go. Whoever restores a VM gives it those that it had, and QEMU refuses a state of others.
    disks: spec.disks.filter(({ unit }) => unit === undefined).map(({ id, readonly }) => `${id} (${readonly ? 'read-only' : 'writable'})`).join(', ')
  }
}

/** One short text for a shape and the arguments that the kernel in the image was booted with. */
export function keyOf (shape: Shape, kernelArguments: readonly string[]): string {
  return digest([...Object.entries(shape).map((pair) => pair.join('=')), ...kernelArguments])
}

/** Throws `ImageIncompatible` with every difference. */
export function checkImage (image: MemoryImage, shape: Shape): void {
  if (image.driver !== 'qemu' || image.version !== IMAGE_VERSION) throw ImageIncompatible(`it was made by the driver ${image.driver}, version ${image.version}, and not by qemu, version ${IMAGE_VERSION}`)
  const names = new Set([...Object.keys(image.shape), ...Object.keys(shape)])
  const differences = [...names].filter((name) => image.shape[name] !== shape[name])
  if (differences.length === 0) return
  throw ImageIncompatible(differences.map((name) => `its ${name} is "${image.shape[name] ?? 'none'}", the VM's is "${shape[name] ?? 'none'}"`).join('; '))
}

/** A model that passes the host's processor through is a different one on each kind of host. */
async function hostCpu (model: string): Promise<string> {
  if (!/^(host|max)\b/.test(model)) return ''
  const lines = (await readFile('/proc/cpuinfo', 'utf8')).split('\n')
  const of = (name: string): string => lines.find((line) => line.startsWith(name)) ?? ''
  return ` (${digest([of('vendor_id'), of('model\t'), of('stepping'), of('flags')])})`
}

function digest (parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 16)
}
