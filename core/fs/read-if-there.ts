import { readFile } from 'node:fs/promises'
import { hasCode } from '../errors/system-code.ts'

/** The text of a file; undefined when the file does not exist. */
export async function readIfThere (path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}
