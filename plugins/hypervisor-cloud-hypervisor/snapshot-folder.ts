// A folder with a snapshot in a VM's run folder. That belongs to the VMM, which can put a link in a folder's place at any moment: so all is done in the folder that was opened, and it was no link.
import { constants } from 'node:fs'
import { mkdir, open, readdir, rmdir, stat, unlink, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'

export interface SnapshotFolder {
  /** path of a file in it, for any process of this server's user until `close` */
  at (name: string): string
  close (): Promise<void>
}

/** Makes an empty one, for the VMM's user alone. */
export async function makeSnapshotFolder (path: string): Promise<SnapshotFolder> {
  await mkdir(path, { mode: 0o700 })
  const { uid, gid } = await stat(dirname(path))
  const handle = await openFolder(path)
  if (process.getuid?.() === 0) await handle.chown(uid, gid)
  return { at: (name) => placeIn(handle, name), close: () => handle.close() }
}

/** Removes one with its files; none is fine. A folder in it is none of ours, and stays. */
export async function removeSnapshotFolder (path: string): Promise<void> {
  try {
    const handle = await openFolder(path)
    try {
      for (const name of await readdir(placeIn(handle, ''))) await unlink(placeIn(handle, name))
    } finally {
      await handle.close()
    }
    await rmdir(path)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return
    if (!hasCode(error, 'ENOTDIR', 'ELOOP')) throw error
    await unlink(path)
  }
}

function openFolder (path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
}

function placeIn ({ fd }: FileHandle, name: string): string { return `/proc/${process.pid}/fd/${fd}/${name}` }
