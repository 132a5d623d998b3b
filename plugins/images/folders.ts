// The image folders on disk: `images/<hex of digest>/`, complete or absent, and `images/tmp-…` for work that a crash may leave behind.
import { constants } from 'node:fs'
import { access, chmod, mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat, statfs } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { Type, type Static } from 'typebox'
import { hasCode } from '../../core/errors/system-code.ts'
import { renameDurably, syncFile, syncFolder } from '../../core/fs/durable.ts'
import { shape } from '../../core/json/shape.ts'
import type { RunConfig } from './image-config.ts'
import type { FileOwners } from './owners.ts'

const TEMPORARY = 'tmp-'
export const ROOTFS = 'rootfs.erofs'
const CONFIG = 'config.json'
const HEX = /^[0-9a-f]{64}$/

const Strings = Type.Array(Type.String())
const StoredConfig = Type.Object({
  digest: Type.String(),
  platform: Type.String(),
  sizeBytes: Type.Integer(),
  createdBy: Type.Optional(Type.Array(Type.String())),
  run: Type.Object({
    cmd: Type.Optional(Strings),
    entrypoint: Type.Optional(Strings),
    env: Type.Record(Type.String(), Type.String()),
    workingDir: Type.Optional(Type.String()),
    user: Type.Optional(Type.String()),
    stopSignal: Type.Integer()
  })
})
const isStoredConfig = shape(StoredConfig)

/** The file beside a root file system. */
export interface StoredContent {
  readonly digest: string
  readonly platform: string
  readonly sizeBytes: number
  readonly run: RunConfig
  /** the command that made each layer, `''` for none; absent: not known */
  readonly createdBy?: readonly string[]
}

export interface Folders {
  /** Makes the folder, removes work that a crash left, and returns the digests of the contents that are there, and the work that cannot be removed now. */
  open (): Promise<{ readonly digests: readonly string[], readonly remains: readonly string[] }>
  /** A new private folder for one piece of work. */
  temporary (): Promise<string>
  /** Removes a temporary folder and everything in it. */
  clear (folder: string): Promise<void>
  /** where the content of a digest is, if it is here */
  folder (digest: string): string
  rootfs (digest: string): string
  /** The content of a digest, if it is complete. */
  read (digest: string): Promise<StoredContent | undefined>
  /** Makes `folder`, which holds the root file system, the content of its digest; durable when it returns. */
  publish (folder: string, content: StoredContent): Promise<void>
  /** Removes the content of a digest. */
  discard (digest: string): Promise<void>
  /** free bytes on the disk of the folder */
  freeBytes (): Promise<number>
}

export function createFolders (root: string, owners: FileOwners): Folders {
  const folderOf = (digest: string): string => join(root, digest.replace(/^sha256:/, ''))
  // rm is much faster than Node's own recursion on a tree of many files, and does not block this process.
  const clear = async (folder: string): Promise<void> => { await owners.run('rm', ['-rf', '--one-file-system', '--', folder]) }
  const temporary = (): Promise<string> => mkdtemp(join(root, TEMPORARY))

  const read = async (digest: string): Promise<StoredContent | undefined> => {
    const folder = folderOf(digest)
    try {
      await access(join(folder, ROOTFS), constants.R_OK)
      const parsed: unknown = JSON.parse(await readFile(join(folder, CONFIG), 'utf8'))
      return isStoredConfig(parsed) && parsed.digest === digest ? asContent(parsed) : undefined
    } catch (error) {
      if (error instanceof SyntaxError || isMissing(error)) return undefined
      throw error
    }
  }

  return {
    clear,
    temporary,
    read,
    folder: folderOf,
    rootfs: (digest) => join(folderOf(digest), ROOTFS),
    async open () {
      await mkdir(root, { recursive: true })
      // Unprivileged VMMs open the root file systems below by path; they cannot list the folders.
      await chmod(root, 0o711)
      const names = await readdir(root)
      const remains: string[] = []
      for (const folder of names.filter((entry) => entry.startsWith(TEMPORARY)).map((name) => join(root, name))) await clear(folder).catch(() => { remains.push(folder) })
      return { digests: names.filter((name) => HEX.test(name)).map((name) => `sha256:${name}`), remains }
    },
    async publish (folder, content) {
      const file = await open(join(folder, CONFIG), 'wx', 0o644)
      try {
        await file.writeFile(JSON.stringify(content))
        await file.sync()
      } finally {
        await file.close()
      }
      await chmod(join(folder, ROOTFS), 0o644)
      await syncFile(join(folder, ROOTFS))
      await chmod(folder, 0o711)
      await syncFolder(folder)
      await renameDurably(folder, folderOf(content.digest))
    },
    async discard (digest) {
      const folder = folderOf(digest)
      // Not in a folder made for it: a full disk has no room for one. It may be there from a removal that failed.
      const grave = join(root, `${TEMPORARY}${basename(folder)}`)
      await rm(grave, { recursive: true, force: true })
      try {
        // first hidden in one step: a half-removed content must not look complete
        await rename(folder, grave)
      } catch (error) {
        if (isMissing(error)) return
        throw error
      }
      await rm(grave, { recursive: true, force: true })
    },
    async freeBytes () {
      const disk = await statfs(root)
      return disk.bavail * disk.bsize
    }
  }
}

/** bytes of a finished root file system */
export async function sizeOf (folder: string): Promise<number> {
  return (await stat(join(folder, ROOTFS))).size
}

function asContent (stored: Static<typeof StoredConfig>): StoredContent {
  return { digest: stored.digest, platform: stored.platform, sizeBytes: stored.sizeBytes, run: stored.run, ...stored.createdBy === undefined ? {} : { createdBy: stored.createdBy } }
}

function isMissing (error: unknown): boolean {
  return hasCode(error, 'ENOENT', 'ENOTDIR')
}
