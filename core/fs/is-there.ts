// Whether a path exists.
import { lstat } from 'node:fs/promises'
import { hasCode } from '../errors/system-code.ts'

/** A link exists wherever it leads. @throws the system's error when it cannot tell */
export async function isThere (path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}
