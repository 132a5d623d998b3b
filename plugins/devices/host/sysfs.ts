// Reads and writes the kernel's files about devices. These may appear and disappear at any moment, so a missing file is an answer and not an error.
import { readdir, readFile, readlink, realpath } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { HostCommandFailed } from '../../../core/process/errors.ts'
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

/** Longer than any driver needs that lets its device go. */
export const WRITE_TIMEOUT_MS = 30_000

/** What `dd` says of the errors that callers tell apart. */
const CODES = new Map([
  ['No such file or directory', 'ENOENT'], ['No such device', 'ENODEV'], ['No space left on device', 'ENOSPC'], ['Too many users', 'EUSERS'], ['Device or resource busy', 'EBUSY']
])

/** @param root where sysfs is mounted; paths are relative to it */
export function createSysfs (root: string, commands: HostCommands): Sysfs {
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
    // These files are calls to the kernel: nothing may be created or truncated, and many may not even be opened for reading. By a process of its own, since the kernel may not come back from one, and a process
    // with a thread in there cannot end.
    async write (path, text) {
      try {
        await commands.run('dd', [`of=${join(root, path)}`, 'conv=nocreat,notrunc', 'bs=4096', 'status=none'], { input: text, timeoutMs: WRITE_TIMEOUT_MS })
      } catch (error) {
        throw named(path, error)
      }
    }
  }
}

/** The error of the system that `dd` tells of. */
function named (path: string, error: unknown): unknown {
  if (!(error instanceof HostCommandFailed) || error.failure.reason !== 'exit') return error
  const why = error.failure.stderr.trim().split(': ').at(-1) ?? ''
  const code = CODES.get(why)
  return Object.assign(new Error(`${path}: ${why}`, { cause: error }), code === undefined ? {} : { code })
}
