// The base of an instance: a memory file that its VM maps privately, as others may do. The instance holds it by a name of its own, a hard link, so whatever the file was made for may be deleted at any time; the
// disk has the space back with the last name.
//
// Nobody writes a base. It can be read by every user, since VMs have users of their own, and stands only in folders that none but the server enters: a VMM is lent it.
import { chmod, link, mkdir } from 'node:fs/promises'
import type { VmMemoryFile } from '../../../core/library/hypervisor.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { removeTree } from '../../../core/fs/durable.ts'
import type { InstancePaths } from '../folder/paths.ts'
import { changesPath, type ImageStage, type StoredImage } from './files.ts'

/** Makes a memory file that nobody writes any more the instance's base. False, without a trace, where the file system gives a file no second name. */
export async function takeBase ({ base }: Pick<InstancePaths, 'base'>, memory: string): Promise<boolean> {
  await removeTree(base.folder)
  await chmod(memory, 0o444)
  await mkdir(base.folder, { mode: 0o700 })
  try {
    await link(memory, base.memory)
    return true
  } catch (error) {
    await removeTree(base.folder)
    if (hasCode(error, 'EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP')) return false
    throw error
  }
}

/** The memory for a VM that goes on from an image of that stage. */
export function memoryFor (paths: InstancePaths, { onBase }: Pick<StoredImage, 'onBase'>, stage: ImageStage): VmMemoryFile {
  if (onBase === undefined) return { path: paths.memory, sharing: 'shared' }
  return { path: paths.base.memory, sharing: 'private', ...onBase.changes ? { changes: changesPath(paths, stage) } : {} }
}
