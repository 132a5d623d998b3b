// The disks that the VM of a template has where its guest takes their driver: larger than any of its clones', and all hole behind the file system.
import { copyFile, rm, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import type { VmSpec } from '../../../core/library/hypervisor.ts'

/** An image is smaller, and an instance whose writable disk is not boots. */
export const PLACEHOLDER_BYTES = 8 * 2 ** 40

/** Nobody else has a use for the files, and a backup would read all of their holes: `remove` is to be called as soon as the VMM has them open. */
export interface Placeholders {
  readonly spec: VmSpec
  remove (): Promise<void>
}

/** Enlarges the VM's writable disk, and gives it a larger copy of its root in its own folder. */
export async function withPlaceholders (spec: VmSpec): Promise<Placeholders> {
  const root = join(spec.directory, 'placeholder.erofs')
  const disks = await Promise.all(spec.disks.map(async (disk) => {
    if (disk.id !== 'root' && disk.id !== 'overlay') return disk
    const path = disk.id === 'root' ? root : disk.path
    if (disk.id === 'root') await copyFile(disk.path, path)
    await truncate(path, PLACEHOLDER_BYTES)
    return { ...disk, path }
  }))
  const paths = disks.filter(({ id }) => id === 'root' || id === 'overlay').map(({ path }) => path)
  return { spec: { ...spec, disks }, remove: async () => { for (const path of paths) await rm(path, { force: true }) } }
}
