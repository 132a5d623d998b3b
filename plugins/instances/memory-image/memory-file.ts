// The file that a VM keeps its memory in, so that a standby need not write all of the memory.
import { statfs } from 'node:fs/promises'
import type { VmMemoryFile } from '../../../core/library/hypervisor.ts'
import { identityOf, pathsIn, type Context } from '../context.ts'
import { makeFile } from '../folder/files.ts'
import { dropMemory } from './files.ts'
import type { InstanceRecord } from '../model/record.ts'

/** Makes the empty memory file of a VM that is about to boot; undefined when VMs keep their memory in no file. */
export async function makeMemory (context: Context, record: InstanceRecord): Promise<VmMemoryFile | undefined> {
  const paths = pathsIn(context, record.id)
  // Memory that an earlier run has left would become this run's.
  await dropMemory(paths)
  if (!context.settings.memoryFiles || !await fitsOnDisk(paths.directory, record.spec.memoryBytes)) return undefined
  await makeFile(paths.memory, identityOf(context, record))
  return { path: paths.memory, sharing: 'shared' }
}

/** The kernel kills a VM whose memory file cannot grow any more, so a VM gets no file when its memory would not fit now. The disk may still fill later. */
export async function fitsOnDisk (folder: string, bytes: number): Promise<boolean> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize > bytes
}
