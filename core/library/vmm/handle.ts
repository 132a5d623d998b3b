// The stored handle of a VM: with it a later server can find the VM, tell its process from a later one with the same pid, and capture it.
import type { ProcessIdentity } from '../../contracts/services.ts'
import { isRecord } from '../../json/is-record.ts'
import type { MemoryImage, VmHandle } from '../hypervisor.ts'
import { HandleUnknown } from './errors.ts'

const HANDLE_VERSION = 1

/** What a memory image of a VM states about it; known since its launch. */
export type ImageFacts = Pick<MemoryImage, 'key' | 'shape' | 'vcpus' | 'memoryBytes'>

interface HandleFacts extends Pick<VmHandle, 'driver' | 'directory' | 'vmmVersion'> {
  readonly process: ProcessIdentity
  readonly image: ImageFacts
  /** data that only the driver understands */
  readonly details?: VmHandle['details']
}

export function makeHandle ({ driver, process, directory, vmmVersion, image, details = {} }: HandleFacts): VmHandle {
  const { pid, startTicks, bootId } = process
  return { driver, version: HANDLE_VERSION, vmmVersion, pid, startTicks, bootId, directory, details: { ...details, image } }
}

/** Throws `HandleUnknown` for a handle of another driver, or of a later version of this one. */
export function identityOf (driver: string, handle: VmHandle): ProcessIdentity {
  if (handle.driver !== driver || handle.version !== HANDLE_VERSION) throw HandleUnknown(handle.driver, handle.version)
  return { pid: handle.pid, startTicks: handle.startTicks, bootId: handle.bootId }
}

/** @throws HandleUnknown */
export function imageFactsOf (handle: VmHandle): ImageFacts {
  const image = handle.details?.['image']
  if (isRecord(image)) {
    const { key, shape, vcpus, memoryBytes } = image
    if (typeof key === 'string' && typeof vcpus === 'number' && typeof memoryBytes === 'number' && isShape(shape)) return { key, shape, vcpus, memoryBytes }
  }
  throw HandleUnknown(handle.driver, handle.version)
}

function isShape (value: unknown): value is ImageFacts['shape'] {
  return isRecord(value) && Object.values(value).every((text) => typeof text === 'string')
}
