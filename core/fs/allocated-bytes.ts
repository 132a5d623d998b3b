// The disk space that a file takes, which for a sparse one is less than its size.
import { lstat } from 'node:fs/promises'
import { hasCode } from '../errors/system-code.ts'

/** 0 when it is gone. */
export async function allocatedBytes (path: string): Promise<number> {
  try {
    return (await lstat(path)).blocks * 512
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 0
    throw error
  }
}
