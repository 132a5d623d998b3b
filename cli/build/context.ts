// The folder of a build as a compressed archive, without the files that its .dockerignore excludes.
import { createReadStream } from 'node:fs'
import { lstat, readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import dockerignore from '@balena/dockerignore'
import { pack, type Pack } from 'tar-stream'
import { Failure } from '../failure.ts'

/** A gzip stream of a tar archive. An error of the folder (a file that cannot be read) is an error of the stream. */
export async function archiveOf (folder: string): Promise<Readable> {
  const ignore = dockerignore.default({ ignorecase: false }).add(await ignoredBy(folder))
  const tar = pack()
  const gzip = createGzip({ level: 1 })
  pipeline(tar, gzip).catch((error: unknown) => gzip.destroy(error instanceof Error ? error : new Error(String(error))))
  add(tar, folder, '', (path) => ignore.ignores(path)).then(() => tar.finalize(), (error: unknown) => tar.destroy(error instanceof Error ? error : new Error(String(error))))
  return gzip
}

async function ignoredBy (folder: string): Promise<string> {
  try {
    return await readFile(join(folder, '.dockerignore'), 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw new Failure(`${join(folder, '.dockerignore')} cannot be read`, { cause: error })
  }
}

async function add (tar: Pack, folder: string, inside: string, ignored: (path: string) => boolean): Promise<void> {
  for (const name of (await readdir(join(folder, inside))).sort()) {
    const path = inside === '' ? name : `${inside}/${name}`
    const file = join(folder, path)
    const { mode, mtime, size, ...kind } = await lstatOf(file)
    if (kind.isDirectory) {
      // A later rule may include something in an ignored folder, so the folder is walked all the same.
      if (!ignored(path)) tar.entry({ name: path, type: 'directory', mode, mtime })
      await add(tar, folder, path, ignored)
    } else if (ignored(path)) continue
    else if (kind.isSymbolicLink) tar.entry({ name: path, type: 'symlink', linkname: await readlink(file), mode, mtime })
    else if (kind.isFile) await pipeline(createReadStream(file, { end: Math.max(0, size - 1) }), tar.entry({ name: path, type: 'file', mode, mtime, size }))
  }
}

async function lstatOf (file: string): Promise<{ mode: number, mtime: Date, size: number, isDirectory: boolean, isSymbolicLink: boolean, isFile: boolean }> {
  const found = await lstat(file)
  return { mode: found.mode & 0o7777, mtime: found.mtime, size: found.size, isDirectory: found.isDirectory(), isSymbolicLink: found.isSymbolicLink(), isFile: found.isFile() }
}
