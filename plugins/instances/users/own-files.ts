// Who owns the files of an instance at rest: the user of its next VM, or, once another VM has that user, one that no VM runs as. A crash may leave some files with the one and some with the other; the disk
// decides, which is given away first and taken back last.
import { chown, lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Identity } from '../folder/files.ts'
import type { InstancePaths } from '../folder/paths.ts'

type Paths = Pick<InstancePaths, 'directory' | 'overlay' | 'operations'>

/** Gives the files of a VM's user to another. No process may run as that user. */
export async function giveAway (paths: Paths, from: Identity, to: Identity): Promise<void> {
  await chown(paths.overlay, to.uid, to.gid)
  for (const path of await filesOf(paths, new Set([from.uid]))) await chown(path, to.uid, to.gid)
}

/** Makes the VM's user the owner of what a user owned who runs no VM. Takes one look where it owns everything, as nearly always. */
export async function takeBack (paths: Paths, from: Identity, to: Identity): Promise<void> {
  const { uid: owner } = await lstat(paths.overlay)
  if (owner === to.uid) return
  // Another owner: the instance is from a time at which the server was not root, and its VMs were of that user.
  for (const path of await filesOf(paths, new Set([from.uid, owner].filter((uid) => uid !== 0)))) {
    if (path !== paths.overlay) await chown(path, to.uid, to.gid)
  }
  await chown(paths.overlay, to.uid, to.gid)
}

/** Files of these owners. A file with a second name is a base that others share, which belongs to nobody's next VM. */
async function filesOf ({ directory, operations }: Paths, owners: ReadonlySet<number>): Promise<string[]> {
  const found: string[] = []
  for (const entry of await readdir(directory, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isFile() || path === operations) continue
    const { uid, nlink } = await lstat(path)
    if (nlink === 1 && owners.has(uid)) found.push(path)
  }
  return found
}
