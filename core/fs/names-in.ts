// The names in a folder.
import { readdir } from 'node:fs/promises'
import { hasCode } from '../errors/system-code.ts'

/** Empty when the folder does not exist. */
export async function namesIn (folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}
