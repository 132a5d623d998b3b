// The file that a managed proxy's output goes to, which is bounded.
import { constants } from 'node:fs'
import { copyFile, open, truncate, type FileHandle } from 'node:fs/promises'
import { hasCode } from '../../../core/errors/system-code.ts'

const MAX_BYTES = 8 * 2 ** 20

/** Opened for a process to write to. It outlives this server. */
export async function openLog (path: string): Promise<FileHandle> {
  return await open(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
}

/** One old file is kept. The process goes on writing to the one it has, so that one is emptied. */
export async function boundLog (path: string, maxBytes = MAX_BYTES): Promise<void> {
  if (await sizeOf(path) <= maxBytes) return
  await copyFile(path, `${path}.1`)
  await truncate(path)
}

export async function sizeOf (path: string): Promise<number> {
  try {
    const handle = await open(path, 'r')
    try {
      return (await handle.stat()).size
    } finally {
      await handle.close()
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 0
    throw error
  }
}
