// The record, in the program's folder, of what an installation made outside it; the removal uses it.
import { join } from 'node:path'
import { readIfThere } from '../../core/fs/read-if-there.ts'
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
  const text = await readIfThere(join(root, PROGRAM, RECORD))
  return text === undefined ? undefined : JSON.parse(text) as InstallRecord
}
