// A file or folder of this host as entries.
import { createReadStream } from 'node:fs'
import { lstat, readdir, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Failure } from '../failure.ts'
import type { Entry } from './entry.ts'

export async function * localEntries (from: string, followLinks: boolean): AsyncGenerator<Entry> {
  yield * entriesBelow(from, '', followLinks)
}

async function * entriesBelow (file: string, path: string, followLinks: boolean): AsyncGenerator<Entry> {
  const found = await (followLinks ? stat(file) : lstat(file)).catch((error: unknown) => {
    throw new Failure(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  })
  const common = { path, mode: found.mode & 0o7777, mtime: Math.floor(found.mtimeMs / 1000) }
  if (found.isSymbolicLink()) yield { ...common, kind: 'link', size: 0, target: await readlink(file) }
  else if (found.isFile()) yield { ...common, kind: 'file', size: found.size, content: createReadStream(file) }
  else if (found.isDirectory()) {
    yield { ...common, kind: 'folder', size: 0 }
    for (const name of (await readdir(file)).sort()) yield * entriesBelow(join(file, name), path === '' ? name : `${path}/${name}`, followLinks)
  } else yield { ...common, kind: 'special file', size: 0 }
}
