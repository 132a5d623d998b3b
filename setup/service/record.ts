// The note in the program's folder of what an installation made outside of it, by which it is removed again.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'
import { PROGRAM, RECORD } from './places.ts'

export interface InstallRecord {
  readonly version: string
  /** files outside of the program's folder, without the root */
  readonly files: readonly string[]
  /** configuration files that the first installation wrote */
  readonly configs: readonly string[]
  /** folders that were not there before, outermost first */
  readonly folders: readonly string[]
}

/** `undefined` when nothing is installed there. */
export async function readRecord (root: string): Promise<InstallRecord | undefined> {
  try {
    return JSON.parse(await readFile(join(root, PROGRAM, RECORD), 'utf8')) as InstallRecord
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}
