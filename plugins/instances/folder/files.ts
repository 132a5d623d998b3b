// Makes and removes what an instance has on disk. The folder belongs to the server and the files in it to the VM's own user,
// who can write them but not put others in their place.
import { constants } from 'node:fs'
import { chmod, chown, lstat, mkdir, open, readdir, rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { hasCode } from '../../../core/errors/system-code.ts'
import { removeTree, syncFile, syncFolder } from '../../../core/fs/durable.ts'
import { makeExt4 } from '../../../core/library/ext4.ts'
import type { HostCommands } from '../../../core/contracts/services.ts'
import type { InstancePaths } from './paths.ts'
import { syncVolumeOverlays } from '../volumes/overlays.ts'

export interface Identity { readonly uid: number, readonly gid: number }

const TRASH = '.trash-'

/** Makes the folder that holds all instances; others may pass through it but not list it. */
export async function makeInstancesFolder (path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o711 })
  await chmod(path, 0o711)
}

/** Makes an instance's files, which are owned by the VM's user, in its folder. */
export async function makeFiles (paths: InstancePaths, overlayBytes: number, identity: Identity | undefined, commands: HostCommands): Promise<void> {
  await Promise.all([makeOverlay(paths.overlay, overlayBytes, identity, commands), makeLogs(paths, identity)])
}

/** Makes an instance's folder, for the server alone to write. */
export async function makeFolder (paths: InstancePaths): Promise<void> {
  await mkdir(paths.directory, { mode: 0o711 })
  await chmod(paths.directory, 0o711)
}

/** Makes the files that the VMM appends to. */
export async function makeLogs (paths: InstancePaths, identity: Identity | undefined): Promise<void> {
  await Promise.all([makeFile(paths.output, identity), makeFile(paths.vmm, identity), makeFile(paths.report, identity)])
}

/** Makes sure that all of an instance's new files survive a power cut. */
export async function syncFiles (paths: InstancePaths): Promise<void> {
  await syncFile(paths.overlay)
  await syncVolumeOverlays(paths.volumes)
  await syncFolder(paths.directory)
  await syncFolder(dirname(paths.directory))
}

/** Makes the files ready for another run: the logs go on, the report of the last run goes. */
export async function prepareRun (paths: InstancePaths, identity: Identity | undefined): Promise<void> {
  await makeFile(paths.output, identity)
  await makeFile(paths.vmm, identity)
  await makeFile(paths.report, identity, constants.O_TRUNC)
}

/** Removes an instance's folder. It is renamed first, so that nobody finds half of it. */
export async function removeFiles (paths: InstancePaths): Promise<void> {
  const trash = join(dirname(paths.directory), `${TRASH}${basename(paths.directory)}`)
  try {
    await rename(paths.directory, trash)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
  await removeTree(trash)
}

/** Finishes removals that a crash has interrupted. Returns the folders that cannot be removed now, and why. */
export async function emptyTrash (instancesFolder: string): Promise<ReadonlyMap<string, unknown>> {
  const faults = new Map<string, unknown>()
  for (const name of await readdir(instancesFolder)) {
    const path = join(instancesFolder, name)
    if (name.startsWith(TRASH)) await removeTree(path).catch((error: unknown) => { faults.set(path, error) })
  }
  return faults
}

/** Folders in the instances folder whose name is no instance's id. */
export async function strangeFolders (instancesFolder: string, ids: ReadonlySet<string>): Promise<string[]> {
  return (await readdir(instancesFolder)).filter((name) => !name.startsWith(TRASH) && !ids.has(name))
}

/** Makes an empty writable disk, owned by the VM's user. Not synced. */
export async function makeOverlay (path: string, bytes: number, identity: Identity | undefined, commands: HostCommands): Promise<void> {
  await makeExt4(commands, path, bytes)
  if (identity !== undefined) await chown(path, identity.uid, identity.gid)
}

/** Makes a file unless it is there, and gives it to the VM's user. */
export async function makeFile (path: string, identity: Identity | undefined, truncate = 0): Promise<void> {
  const handle = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK | truncate, 0o600)
  try {
    if (identity !== undefined) await handle.chown(identity.uid, identity.gid)
  } finally {
    await handle.close()
  }
}

/** Gives a file that the server has made to the VM's own user, and to nobody else. */
export async function giveFile (path: string, identity: Identity | undefined): Promise<void> {
  await chmod(path, 0o600)
  if (identity !== undefined) await chown(path, identity.uid, identity.gid)
}

/** Size of a file in bytes; 0 when there is none. */
export async function sizeOf (path: string): Promise<number> {
  try {
    return (await lstat(path)).size
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 0
    throw error
  }
}
