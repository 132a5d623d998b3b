// Writes that are on disk, whole, when they return, whatever happens to the machine next.
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, lstat, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { hasCode } from '../errors/system-code.ts'
import { flatten } from './flatten.ts'

/** Makes a folder's own entries durable: new names, renames and removals in it. */
export async function syncFolder (path: string): Promise<void> {
  await syncPath(path, constants.O_RDONLY | constants.O_DIRECTORY)
}

/** Makes the content of a file durable that other code has written. */
export async function syncFile (path: string): Promise<void> {
  await syncPath(path, constants.O_RDONLY)
}

/**
 * Replaces the file at `path` in one step: readers see the old content or the new, never half. Before that the content stands under a
 * temporary name `.<name>.<random>.tmp`, which a crash may leave behind.
 */
export async function writeFileDurably (path: string, data: string | Uint8Array, mode = 0o644): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomUUID()}.tmp`)
  try {
    const handle = await open(temporary, 'wx', mode)
    try {
      await handle.writeFile(data)
      // the process's umask has reduced the mode given to open
      await handle.chmod(mode)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  await syncFolder(dirname(path))
}

/** Renames, and makes both folders durable. The caller must have synced what is renamed. */
export async function renameDurably (from: string, to: string): Promise<void> {
  await rename(from, to)
  await syncFolder(dirname(to))
  if (dirname(from) !== dirname(to)) await syncFolder(dirname(from))
}

/**
 * Removes a file or a whole folder; a path that does not exist is fine. Symbolic links are removed, not followed. Folders without
 * permission bits, which unpacked images have, are opened up first, and those that are too deep to be named are brought up.
 */
export async function removeTree (path: string): Promise<void> {
  for (let isOpen = false; ;) {
    try {
      return await rm(path, { recursive: true, force: true })
    } catch (error) {
      if (hasCode(error, 'ENAMETOOLONG') && await flatten(path) > 0) continue
      if (!hasCode(error, 'EACCES', 'EPERM') || isOpen) throw error
      await openUp(path)
      isOpen = true
    }
  }
}

/** A removal that failed still goes on elsewhere in the tree for a moment: what is gone needs nothing. */
async function openUp (path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isDirectory()) return
    await chmod(path, 0o700)
    for (const entry of await readdir(path, { withFileTypes: true })) {
      if (entry.isDirectory()) await openUp(join(path, entry.name))
    }
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
}

async function syncPath (path: string, flags: number): Promise<void> {
  const handle = await open(path, flags)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
