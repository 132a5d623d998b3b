// Reads and writes the kernel's files about devices. These may appear and disappear at any moment, so a missing file is an answer and not an error.
import { constants } from 'node:fs'
import { readdir, readFile, readlink, realpath, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { hasCode } from '../../../core/errors/system-code.ts'

export interface Sysfs {
  readonly root: string
  /** the trimmed text of a file; undefined when there is none, or it cannot be read */
  read (path: string): Promise<string | undefined>
  /** sorted names in a folder; empty when it is missing */
  list (path: string): Promise<readonly string[]>
  /** the last part of a symbolic link's target */
  target (path: string): Promise<string | undefined>
  /** the absolute path behind all links; undefined when there is nothing */
  resolve (path: string): Promise<string | undefined>
  /** Writes to a file that exists. */
  write (path: string, text: string): Promise<void>
}

/** @param root where sysfs is mounted; paths are relative to it */
export function createSysfs (root: string): Sysfs {
  const orNothing = async <T> (work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work()
    } catch (error) {
      if (hasCode(error, 'ENOENT', 'ENOTDIR', 'EINVAL', 'ENODEV', 'EIO', 'EACCES', 'EISDIR')) return undefined
      throw error
    }
  }
  return {
    root,
    read: async (path) => await orNothing(async () => (await readFile(join(root, path), 'utf8')).trim()),
    list: async (path) => (await orNothing(async () => await readdir(join(root, path))) ?? []).sort(),
    target: async (path) => await orNothing(async () => basename(await readlink(join(root, path)))),
    resolve: async (path) => await orNothing(async () => await realpath(join(root, path))),
    // These files are calls to the kernel: nothing may be created or truncated, and many may not even be opened for reading.
    write: async (path, text) => { await writeFile(join(root, path), text, { flag: constants.O_WRONLY }) }
  }
}
