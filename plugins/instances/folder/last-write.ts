// When the VM of an instance has last written anything, as far as its files tell. What a guest keeps to its memory leaves no trace.
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../../core/errors/system-code.ts'
import { overlaysIn } from '../volumes/overlays.ts'
import type { InstancePaths } from './paths.ts'

/** Epoch `ms`, of its disks and logs. */
export async function lastWriteOf ({ overlay, output, vmm, volumes }: InstancePaths): Promise<number> {
  const paths = [overlay, output, vmm, ...(await overlaysIn(volumes)).map((name) => join(volumes, name))]
  return Math.max(...await Promise.all(paths.map(async (path) => await unlessMissing(async () => (await lstat(path)).mtimeMs, 0))))
}

/** An operator may have removed a log; the end of a VM must be stored all the same. */
export async function unlessMissing<T> (read: () => Promise<T>, otherwise: T): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ELOOP')) return otherwise
    throw error
  }
}
