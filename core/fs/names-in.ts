// What a folder holds.
import { readdir } from 'node:fs/promises'
import { hasCode } from '../errors/system-code.ts'

/** Nothing when the folder is not there. */
export async function namesIn (folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}
