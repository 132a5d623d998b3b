// Whether there is something at a path.
import { lstat } from 'node:fs/promises'
import { hasCode } from '../errors/system-code.ts'

/** A link is something, wherever it leads. @throws what the system says when it cannot tell */
export async function isThere (path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}
