// The folder of a build as a compressed archive, without the files that its .dockerignore, or that of its Dockerfile, excludes.
import { lstat, readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import dockerignore from '@balena/dockerignore'
import { pack, type Pack } from 'tar-stream'
import { hasCode } from '../../core/errors/system-code.ts'
import { contentOf, reading } from '../local-file.ts'

/**
 * A gzip stream of a tar archive. A file or folder that cannot be read is an error of the stream, with its name.
 * @param dockerfile its path in the folder, if it is there
 */
export async function archiveOf (folder: string, dockerfile: string | undefined): Promise<Readable> {
  const own = dockerfile === undefined ? undefined : `${dockerfile}${IGNORE_FILE}`
  const rules = own === undefined ? undefined : await textOf(join(folder, own))
  const ignore = dockerignore.default({ ignorecase: false }).add(rules ?? await textOf(join(folder, IGNORE_FILE)) ?? '')
  // The server reads them, and keeps them from COPY by the same rules.
  const needed = new Set([dockerfile, own, IGNORE_FILE])
  const tar = pack()
  const gzip = createGzip({ level: 1 })
  pipeline(tar, gzip).catch((error: unknown) => gzip.destroy(error instanceof Error ? error : new Error(String(error))))
  add(tar, folder, '', (path) => !needed.has(path) && ignore.ignores(path)).then(() => tar.finalize(), (error: unknown) => tar.destroy(error instanceof Error ? error : new Error(String(error))))
  return gzip
}

const IGNORE_FILE = '.dockerignore'

/** Undefined when there is no such file. */
async function textOf (file: string): Promise<string | undefined> {
  return await reading(file, readFile(file, 'utf8').catch((error: unknown) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }))
}

async function add (tar: Pack, folder: string, inside: string, ignored: (path: string) => boolean): Promise<void> {
  for (const name of (await reading(join(folder, inside), readdir(join(folder, inside)))).sort()) {
    const path = inside === '' ? name : `${inside}/${name}`
    const file = join(folder, path)
    const { mode, mtime, size, ...kind } = await lstatOf(file)
    if (kind.isDirectory) {
      // A later rule may include something in an ignored folder, so the folder is walked all the same.
      if (!ignored(path)) tar.entry({ name: path, type: 'directory', mode, mtime })
      await add(tar, folder, path, ignored)
    } else if (ignored(path)) continue
    else if (kind.isSymbolicLink) tar.entry({ name: path, type: 'symlink', linkname: await reading(file, readlink(file)), mode, mtime })
    else if (kind.isFile) await reading(file, pipeline(await contentOf(file, size), tar.entry({ name: path, type: 'file', mode, mtime, size })))
  }
}

async function lstatOf (file: string): Promise<{ mode: number, mtime: Date, size: number, isDirectory: boolean, isSymbolicLink: boolean, isFile: boolean }> {
  const found = await reading(file, lstat(file))
  return { mode: found.mode & 0o7777, mtime: found.mtime, size: found.size, isDirectory: found.isDirectory(), isSymbolicLink: found.isSymbolicLink(), isFile: found.isFile() }
}
