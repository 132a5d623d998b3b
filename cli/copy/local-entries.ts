// A file or folder of this host as entries.
import { lstat, readdir, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { contentOf, reading } from '../local-file.ts'
import type { Entry } from './entry.ts'

export async function * localEntries (from: string, followLinks: boolean): AsyncGenerator<Entry> {
  yield * entriesBelow(from, '', followLinks)
}

async function * entriesBelow (file: string, path: string, followLinks: boolean): AsyncGenerator<Entry> {
  const found = await reading(file, followLinks ? stat(file) : lstat(file))
  const common = { path, mode: found.mode & 0o7777, mtime: Math.floor(found.mtimeMs / 1000) }
  if (found.isSymbolicLink()) yield { ...common, kind: 'link', size: 0, target: await reading(file, readlink(file)) }
  else if (found.isFile()) {
    const content = await contentOf(file)
    try {
      yield { ...common, kind: 'file', size: found.size, content }
    } finally {
      content.destroy()
    }
  } else if (found.isDirectory()) {
    yield { ...common, kind: 'folder', size: 0 }
    for (const name of (await reading(file, readdir(file))).sort()) yield * entriesBelow(join(file, name), path === '' ? name : `${path}/${name}`, followLinks)
  } else yield { ...common, kind: 'special file', size: 0 }
}
