// The files of the data folder: whose folders are there, and what is half.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../../core/errors/system-code.ts'

/** names of what is under way, or was when somebody died */
const HALF = /(?:\.making$|\.making-|\.taken$|^\.trash-|^tmp-|^replacement$|^restore\.|\.partial$|\.tmp$)/
const UNPACKING = 'volumes/unpacking'

export async function namesIn (folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}

/** What no operation that is over leaves. */
export async function halves (dataDir: string): Promise<string[]> {
  const found: string[] = []
  for (const top of ['instances', 'snapshots', 'volumes', 'images', 'templates', 'builds', 'pushes', 'system']) {
    for (const path of await readdir(join(dataDir, top), { recursive: true }).catch((error: unknown) => { if (hasCode(error, 'ENOENT')) return []; throw error })) {
      const name = path.split('/').at(-1) ?? ''
      if (HALF.test(name)) found.push(join(top, path))
    }
  }
  return [...found, ...(await namesIn(join(dataDir, UNPACKING))).map((name) => join(UNPACKING, name))]
}
