// The stored facts by which a later server can find a VM, distinguish it from a process that was given the same pid, and capture it.
import type { VmHandle } from '../../core/library/hypervisor.ts'
import type { ProcessIdentity } from '../../core/contracts/services.ts'
import { isRecord } from '../../core/json/is-record.ts'
import { HandleUnknown } from '../../core/library/vmm/errors.ts'
import type { Shape } from '../../core/library/vmm/shape.ts'

const HANDLE_VERSION = 1
/** version for a VM that holds its memory: an older server would save such a VM without its memory */
const HOLDING_VERSION = 2

/** The facts about a VM that go into its memory image, known since its launch. */
export interface ImageFacts {
  readonly key: string
  readonly shape: Shape
  readonly vcpus: number
  readonly memoryBytes: number
  /** further, plugged memory; absent: none */
  readonly hotplugBytes?: number
  /** of memory that the VM shares with a file */
  readonly memoryFile?: string
  /** The memory is in no file, and can be copied from outside. */
  readonly holdsMemory?: true
  /** the file that the VM maps privately, when its changes can be read from outside */
  readonly memoryBase?: string
}

interface HandleFacts extends Pick<VmHandle, 'driver' | 'directory' | 'vmmVersion'> {
  readonly process: ProcessIdentity
  readonly image: ImageFacts
  /** memory of a VM with a balloon; undefined: it has none */
  readonly balloonBytes: number | undefined
}

export function makeHandle ({ driver, process, directory, vmmVersion, image, balloonBytes }: HandleFacts): VmHandle {
  const { pid, startTicks, bootId } = process
  return { driver, version: image.holdsMemory === true ? HOLDING_VERSION : HANDLE_VERSION, vmmVersion, pid, startTicks, bootId, directory, details: { image, ...balloonBytes === undefined ? {} : { balloonBytes } } }
}

/** Throws `HandleUnknown` for a handle of another driver, or of a later version of this one. */
export function identityOf (handle: VmHandle, driver: string): ProcessIdentity {
  if (handle.driver !== driver || ![HANDLE_VERSION, HOLDING_VERSION].includes(handle.version)) throw HandleUnknown(handle.driver, handle.version)
  return { pid: handle.pid, startTicks: handle.startTicks, bootId: handle.bootId }
}

/** All memory of a VM that has a balloon; undefined for one that has none. */
export function balloonBytesOf ({ details }: VmHandle): number | undefined {
  const bytes = details?.['balloonBytes']
  return typeof bytes === 'number' ? bytes : undefined
}

/** Undefined for a handle from before there were memory images. */
export function imageFactsOf (handle: VmHandle): ImageFacts | undefined {
  const image = handle.details?.['image']
  if (!isRecord(image)) return undefined
  const { key, shape, vcpus, memoryBytes, hotplugBytes, memoryFile, holdsMemory, memoryBase } = image
  if (typeof key !== 'string' || typeof vcpus !== 'number' || typeof memoryBytes !== 'number' || !isShape(shape)) return undefined
  return { key, shape, vcpus, memoryBytes, ...typeof hotplugBytes === 'number' ? { hotplugBytes } : {}, ...typeof memoryFile === 'string' ? { memoryFile } : {}, ...holdsMemory === true ? { holdsMemory } : {}, ...typeof memoryBase === 'string' ? { memoryBase } : {} }
}

function isShape (value: unknown): value is Shape {
  return isRecord(value) && Object.values(value).every((text) => typeof text === 'string')
}
