// Whether the VM of an instance shares the memory file of what it is made of. A VM that does has the pages in common with all others of that file, and its images hold only what differs.
import type { PrivateMemory, VmMemoryFile } from '../../../core/library/hypervisor.ts'
import { compressionFor } from '../compression/compression-for.ts'
import type { BaseContext } from '../context.ts'
import type { InstancePaths } from '../folder/paths.ts'
import type { InstanceSpec } from '../model/record.ts'
import { driverOf } from '../operations/launch.ts'
import { takeBase } from './base.ts'
import type { StoredImage } from './files.ts'

type SharingSpec = Pick<InstanceSpec, 'hypervisor' | 'hotplugBytes' | 'snapshotPolicy'>

/** The first answer may take as long as a boot. */
export async function sharesMemory (context: BaseContext, spec: SharingSpec): Promise<boolean> {
  const memory = privateMemoryOf(context, spec)
  return memory !== undefined && await memory.refusal() === undefined
}

/** The same as far as it is known, for those who do not wait. */
async function knownToShareMemory (context: BaseContext, spec: SharingSpec): Promise<boolean> {
  return await privateMemoryOf(context, spec)?.isProven() ?? false
}

/** What a VM is restored on that shares a template's memory file, which becomes its base; undefined where it gets a copy. */
export async function sharedMemory (context: BaseContext, spec: SharingSpec, paths: InstancePaths, memory: string): Promise<VmMemoryFile | undefined> {
  if (!await knownToShareMemory(context, spec) || !await takeBase(paths, memory)) return undefined
  return { path: paths.base.memory, sharing: 'private' }
}

/** Whether an image is written as what differs from its base. One that is to be compressed is whole. @param wanted as in `StoredImage` */
export function savesChanges ({ settings }: BaseContext, spec: SharingSpec, wanted: StoredImage['wanted']): boolean {
  return wanted === undefined ? compressionFor(undefined, spec, settings.compression) === undefined : wanted === null
}

function privateMemoryOf (context: BaseContext, spec: SharingSpec): PrivateMemory | undefined {
  // Plugged memory would have to be written out and read as a whole.
  if (!context.settings.privateMemory || spec.hotplugBytes !== undefined || !savesChanges(context, spec, undefined)) return undefined
  return driverOf(context, { spec: spec as InstanceSpec }).imaging?.privateMemory
}
