// Whether the proxy gives up root itself, once it is loaded, or the starting process does it.
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { hasCode } from '../../../core/errors/system-code.ts'

/** Whether this Node lets a program become another user. Debian 13's, built with the system's libuv, does not: it takes io_uring to be in use. */
export function nodeGivesUpRoot (): boolean {
  try {
    // Changes nothing: Node makes its own check before it calls the kernel.
    process.setuid?.(process.getuid?.() ?? 0)
    return true
  } catch (error) {
    if (hasCode(error, 'ERR_INVALID_STATE')) return false
    throw error
  }
}

/** The first folder above these files that other users cannot enter. */
export async function closedFolder (files: readonly string[]): Promise<string | undefined> {
  for (const file of files) {
    for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
      if (((await stat(folder)).mode & 0o001) === 0) return folder
    }
  }
  return undefined
}
