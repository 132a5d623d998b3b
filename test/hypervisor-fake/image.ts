// What the two forms of the fake driver have in common: their version, and the facts and files of a memory image.
import { open, readFile, stat } from 'node:fs/promises'
import type { MemoryImage, VmHandle, VmSpec } from '../../core/library/hypervisor.ts'
import { ImageDamaged, SpecInvalid } from '../../core/library/vmm/errors.ts'
import { checkImage, keyOf, type Shape } from '../../core/library/vmm/shape.ts'
import type { ImageFacts } from '../../plugins/hypervisor-qemu/handle.ts'

export const VERSION = '1.0'
const IMAGE_VERSION = 1
/** where a fake guest's memory holds something */
const CONTENT_AT = 4096

/** Whether a VM that runs can get another limit of its disks; where it cannot, an image is for VMs with one or for VMs without. */
export type DiskLimits = 'changeable' | 'fixed'

/** What a VM must have in common with an image. Disks with a unit are plugged, so they are no part of it. */
function shapeOf ({ vcpus, memoryBytes, disks, network, diskBytesPerSecond }: VmSpec, version: string, limits: DiskLimits): Shape {
  const device: Shape = network === undefined ? {} : { network: 'fake' }
  const fixed = disks.filter(({ unit }) => unit === undefined)
  const limit: Shape = limits === 'changeable' ? {} : { limit: diskBytesPerSecond === undefined ? 'none' : 'all disks' }
  return { vmm: `fake ${version}`, cpu: 'fake', ...device, ...limit, vcpus: String(vcpus), memory: String(memoryBytes), disks: fixed.map(({ id, readonly }) => `${id} ${String(readonly)}`).join(', ') }
}

export function keyFor (spec: VmSpec, version: string, limits: DiskLimits = 'changeable'): string {
  return keyOf(shapeOf(spec, version, limits), spec.kernel.arguments)
}

/** What a handle keeps beside the process: the facts of images, and the network for tests to see what the VM was given. @param image when the VM is made of one */
export function detailsOf (spec: VmSpec, version: string, image?: MemoryImage, limits: DiskLimits = 'changeable'): Record<string, unknown> {
  const { vcpus, memoryBytes, memory, network } = spec
  const facts: ImageFacts = {
    key: image?.key ?? keyFor(spec, version, limits), shape: shapeOf(spec, version, limits), vcpus, memoryBytes, ...memory?.sharing === 'shared' ? { memoryFile: memory.path } : {}, ...memory?.sharing === 'private' ? { memoryBase: memory.path } : {}
  }
  return { image: facts, ...network === undefined ? {} : { network } }
}

/** The image that a capture has made. */
export async function imageOf (handle: VmHandle, { key, shape, vcpus, memoryBytes }: ImageFacts, files: { readonly statePath: string, readonly memoryPath: string }): Promise<MemoryImage> {
  const stateBytes = (await stat(files.statePath)).size
  const memoryStoredBytes = (await stat(files.memoryPath)).blocks * 512
  return { driver: handle.driver, version: IMAGE_VERSION, vmmVersion: handle.vmmVersion, key, shape, vcpus, memoryBytes, stateBytes, memoryStoredBytes, capturedAt: new Date().toISOString() }
}

export interface ImageUse {
  readonly driver: string
  readonly version: string
  readonly spec: VmSpec
  readonly image: MemoryImage
  readonly statePath: string
  /** absent: changeable */
  readonly limits?: DiskLimits
}

/** Throws what a real driver would, of an image that is of no use for a VM; returns the path of the memory file. @param isWhole whether memory files are as large as the memory */
export async function checkFits ({ driver, version, spec, image, statePath, limits = 'changeable' }: ImageUse, isWhole = true): Promise<string> {
  if (spec.memory === undefined) throw SpecInvalid('it names no memory file')
  checkImage(image, { driver, version: IMAGE_VERSION }, shapeOf(spec, version, limits))
  if ((await stat(statePath)).size !== image.stateBytes) throw ImageDamaged('the state file was cut')
  const { size } = await stat(spec.memory.path)
  if (isWhole && size !== spec.memoryBytes) throw SpecInvalid('the memory file has another size')
  return spec.memory.path
}

/** Writes a small memory into a file that is as large as the whole, with holes. @param flag as of `open` */
export async function writeMemory (path: string, memoryBytes: number, memory: string, flag: 'wx' | 'r+'): Promise<void> {
  const file = await open(path, flag, 0o600)
  try {
    await file.truncate(memoryBytes)
    await file.write(Buffer.from(memory.padEnd(CONTENT_AT, '\n')), 0, CONTENT_AT, CONTENT_AT)
  } finally {
    await file.close()
  }
}

export async function readMemory (path: string): Promise<string> {
  const file = await open(path, 'r')
  try {
    const { buffer } = await file.read(Buffer.alloc(CONTENT_AT), 0, CONTENT_AT, CONTENT_AT)
    return buffer.toString().replaceAll('\0', '').trim()
  } finally {
    await file.close()
  }
}

/** What no VMM could boot: a fake would not notice by itself. */
export async function checkBootable ({ kernel, memory }: VmSpec): Promise<void> {
  if (memory?.sharing === 'private') throw SpecInvalid('private memory needs an image to be restored from')
  await readFile(kernel.path)
}
