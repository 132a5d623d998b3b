// Shares of GPUs: the profiles that the host's devices offer as mediated devices, and the mediated devices that are made.
import { hasCode } from '../../../core/errors/system-code.ts'
import { ShareFailed } from '../errors.ts'
import { KernelSilent } from './deadline.ts'
import { PCI_DEVICES } from './pci.ts'
import type { Sysfs } from './sysfs.ts'

export const MDEV_DEVICES = 'bus/mdev/devices'

export interface MdevType {
  /** PCI address */
  readonly parent: string
  /** folder name of the type: `nvidia-556` */
  readonly typeId: string
  /** the name that people use: `NVIDIA A40-2Q`; the folder name when the driver gives no other */
  readonly name: string
  /** how many more can be made at present */
  readonly available: number
  readonly framebufferMb: number
}

/** All types of all devices of the host. */
export async function readMdevTypes (sysfs: Sysfs): Promise<readonly MdevType[]> {
  const parents = await sysfs.list(PCI_DEVICES)
  return (await Promise.all(parents.map(async (parent) => await typesOf(sysfs, parent)))).flat()
}

async function typesOf (sysfs: Sysfs, parent: string): Promise<readonly MdevType[]> {
  const folder = `${PCI_DEVICES}/${parent}/mdev_supported_types`
  return await Promise.all((await sysfs.list(folder)).map(async (typeId) => {
    const [name, available, description] = await Promise.all(['name', 'available_instances', 'description'].map(async (file) => await sysfs.read(`${folder}/${typeId}/${file}`)))
    return { parent, typeId, name: name === undefined || name === '' ? typeId : name, available: count(available), framebufferMb: framebufferOf(description) }
  }))
}

/** Whether a request means this type: NVIDIA's names begin with the maker, which requests leave out. */
export function isProfile ({ typeId, name }: MdevType, profile: string): boolean {
  return [typeId, name, name.replace(/^(NVIDIA|GRID) /, '')].includes(profile)
}

/** False when the device has no room for another one. @throws device_bind_failed */
export async function makeMdev (sysfs: Sysfs, { parent, typeId }: MdevType, uuid: string): Promise<boolean> {
  try {
    await sysfs.write(`${PCI_DEVICES}/${parent}/mdev_supported_types/${typeId}/create`, uuid)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOSPC', 'EUSERS', 'ENOENT', 'ENODEV', 'EBUSY')) return false
    if (error instanceof KernelSilent) throw ShareFailed.from(error, parent, error.message)
    throw error
  }
}

/** The uuids of all mediated devices of the host. */
export async function listMdevs (sysfs: Sysfs): Promise<readonly string[]> {
  return await sysfs.list(MDEV_DEVICES)
}

export async function hasMdev (sysfs: Sysfs, uuid: string): Promise<boolean> {
  return (await listMdevs(sysfs)).includes(uuid)
}

/** Does nothing when there is no such device. */
export async function removeMdev (sysfs: Sysfs, uuid: string): Promise<void> {
  if (await hasMdev(sysfs, uuid)) await sysfs.write(`${MDEV_DEVICES}/${uuid}/remove`, '1')
}

function count (text: string | undefined): number {
  return /^\d+$/.test(text ?? '') ? Number(text) : 0
}

/** `num_heads=4, frl_config=60, framebuffer=2048M, max_resolution=7680x4320` */
function framebufferOf (description: string | undefined): number {
  const [, megabytes] = /framebuffer=(\d+)M/.exec(description ?? '') ?? []
  return megabytes === undefined ? 0 : Number(megabytes)
}
