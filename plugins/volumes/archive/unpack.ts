// Unpacks a tar.gz into a folder that nobody else can enter, from which a file system is then made.
//
// The folder was empty, and nobody else writes into it. So what is in it was put there by earlier entries, and nothing can change between
// a look and the step that follows it. No entry is ever written through a link.
import { chown, constants, lchown, link, lstat, lutimes, mkdir, open, rm, symlink, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { DiskWatch } from '../../../core/fs/disk-space.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { ArchiveInvalid, ArchiveTooLarge } from '../errors.ts'
import { GIB } from '../record.ts'
import { Blocks } from './blocks.ts'
import { Budget } from './budget.ts'
import { checkTarget, partsOf } from './names.ts'
import { watchPace, type PaceLimits } from './pace.ts'
import { printable, readTar, type TarEntry } from './tar.ts'

export interface UnpackLimits {
  /** the most GB that the content may take */
  readonly sizeGb: number
  readonly maxEntries: number
  readonly pace?: PaceLimits
}

export interface Unpacked {
  readonly sizeGb: number
  readonly inodes: number
  /** owner of the root folder */
  readonly owner: { readonly uid: number, readonly gid: number }
  readonly mode: number
}

/** the average size of the headers of one entry */
const HEADER_BYTES = 4096
const CHUNK_BYTES = 2 ** 18
const ROOT_ONLY = 'lost+found'

/**
 * @param folder exists and is empty; what a failure leaves in it is the caller's to remove
 * @param watch of the disk that the folder is on
 * @throws invalid_archive, archive_too_large, and `DiskShort`
 */
export async function unpack (source: Readable, folder: string, limits: UnpackLimits, watch?: DiskWatch): Promise<Unpacked> {
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES })
  // Not `pipeline`: when the archive is refused, it would end the sender's connection, and the answer with it.
  const cut = (error?: Error): void => { gunzip.destroy(error ?? ArchiveInvalid('its sender went away in the middle of it')) }
  const short = (): void => { gunzip.destroy(watch?.signal.reason) }
  watch?.signal.addEventListener('abort', short)
  const closed = (): void => { if (!source.readableEnded) cut() }
  // It may have gone away while it waited for its turn.
  if (source.destroyed) closed()
  source.once('error', cut).once('close', closed).pipe(gunzip)
  const stopWatch = watchPace(source, gunzip, () => { gunzip.destroy(ArchiveInvalid('its sender was waited for too long')) }, limits.pace)
  const limitBytes = limits.sizeGb * GIB + limits.maxEntries * HEADER_BYTES
  const blocks = new Blocks(gunzip, limitBytes, () => ArchiveTooLarge(`unpacked it has more than ${limitBytes} bytes`))
  const target = new Target(folder, new Budget(limits.sizeGb, limits.maxEntries), watch)
  try {
    await readTar(blocks, async (entry, content) => { await putOrRefuse(target, entry, content) })
  } catch (error) {
    throw hasCode(error, 'Z_DATA_ERROR', 'Z_BUF_ERROR', 'Z_NEED_DICT') ? ArchiveInvalid(`it is not whole gzip (${error instanceof Error ? error.message : ''})`) : error
  } finally {
    stopWatch()
    source.off('error', cut).off('close', closed).unpipe(gunzip)
    gunzip.destroy()
    watch?.signal.removeEventListener('abort', short)
  }
  return target.result()
}

/** A path that is no longer than paths may be can be too long below the folder. */
async function putOrRefuse (target: Target, entry: TarEntry, content: AsyncIterable<Buffer>): Promise<void> {
  try {
    await target.put(entry, content)
  } catch (error) {
    throw hasCode(error, 'ENAMETOOLONG') ? ArchiveInvalid(`the name ${printable(entry.path)}, or that of what it links to, is too long for this host`) : error
  }
}

class Target {
  readonly #folder: string
  readonly #budget: Budget
  readonly #watch: DiskWatch | undefined
  /** folders that are known to exist, as many as are worth remembering */
  readonly #folders = new Set<string>()
  readonly #isRoot = process.getuid?.() === 0
  #owner = { uid: 0, gid: 0 }
  #mode = 0o755

  constructor (folder: string, budget: Budget, watch: DiskWatch | undefined) {
    this.#watch = watch
    this.#folder = folder
    this.#budget = budget
  }

  result (): Unpacked {
    return { ...this.#budget.fit(), owner: this.#owner, mode: this.#mode }
  }

  async put (entry: TarEntry, content: AsyncIterable<Buffer>): Promise<void> {
    const parts = partsOf(entry.path)
    const name = parts.pop()
    if (name === undefined) return this.#putRoot(entry)
    if (parts.length === 0 && name === ROOT_ONLY && entry.type !== 'dir') throw ArchiveInvalid(`${ROOT_ONLY} belongs to the file system and must be a folder`)
    this.#budget.charge(entry.type === 'file' ? entry.sizeBytes : entry.type === 'dir' ? 1 : entry.target.length)
    await this.#enter(parts)
    const path = join(this.#folder, ...parts, name)
    if (entry.type === 'dir') return await this.#putFolder(entry, path, [...parts, name])
    await this.#makeRoom(entry, path)
    if (entry.type === 'file') await this.#putFile(entry, path, content)
    else if (entry.type === 'symlink') await this.#putSymlink(entry, path, parts.length)
    else await this.#putLink(entry, path)
  }

  #putRoot ({ type, uid, gid, mode, path }: TarEntry): void {
    if (type !== 'dir') throw ArchiveInvalid(`the name "${printable(path)}" is empty`)
    this.#owner = { uid, gid }
    this.#mode = mode
  }

  /** Makes the missing folders above an entry. @throws when one of them is not a folder */
  async #enter (parts: readonly string[]): Promise<void> {
    if (this.#folders.has(parts.join('/'))) return
    for (let count = 1; count <= parts.length; count++) {
      const key = parts.slice(0, count).join('/')
      if (!this.#folders.has(key) && !await this.#isFolder(join(this.#folder, key), key)) {
        this.#budget.charge(1)
        await mkdir(join(this.#folder, key), { mode: 0o755 })
      }
      this.#remember(key)
    }
  }

  #remember (key: string): void {
    if (this.#folders.size >= 20_000) this.#folders.clear()
    this.#folders.add(key)
  }

  /** False when there is nothing at that path. */
  async #isFolder (path: string, key: string): Promise<boolean> {
    const found = await unlessMissing(path)
    if (found === undefined) return false
    if (!found.isDirectory()) throw ArchiveInvalid(`${printable(key)} is no folder, and an entry wants to be inside of it`)
    return true
  }

  async #putFolder ({ mode, uid, gid, path: shown }: TarEntry, path: string, parts: readonly string[]): Promise<void> {
    await this.#enter(parts.slice(0, -1))
    if (!await this.#isFolder(path, shown)) await mkdir(path, { mode: 0o700 })
    this.#remember(parts.join('/'))
    // Without following links: it is a folder, as was checked before.
    if (this.#isRoot) await chown(path, uid, gid)
    const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
    try {
      // A server that is not root must still be able to write into it.
      await handle.chmod(this.#isRoot ? mode : mode | 0o700)
    } finally {
      await handle.close()
    }
  }

  /** An entry may come twice, for example when an archive was added to: the later one counts. */
  async #makeRoom ({ path: shown }: TarEntry, path: string): Promise<void> {
    const found = await unlessMissing(path)
    if (found === undefined) return
    if (found.isDirectory()) throw ArchiveInvalid(`${printable(shown)} is a folder, and another entry of that name is not`)
    await rm(path)
  }

  async #putFile (entry: TarEntry, path: string, content: AsyncIterable<Buffer>): Promise<void> {
    const handle = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600)
    try {
      await writeSparsely(handle, content, entry.sizeBytes, (bytes) => { this.#watch?.count(bytes) })
      if (this.#isRoot) await handle.chown(entry.uid, entry.gid)
      await handle.chmod(entry.mode)
      await handle.utimes(entry.mtime, entry.mtime)
    } finally {
      await handle.close()
    }
  }

  async #putSymlink ({ path: shown, target, uid, gid, mtime }: TarEntry, path: string, depth: number): Promise<void> {
    checkTarget(shown, target, depth)
    await symlink(target, path)
    if (this.#isRoot) await lchown(path, uid, gid)
    await lutimes(path, mtime, mtime)
  }

  async #putLink ({ path: shown, target }: TarEntry, path: string): Promise<void> {
    const parts = partsOf(target, 'target of a hard link')
    const refuse = (): Error => ArchiveInvalid(`the hard link ${printable(shown)} is to ${printable(target)}, which is no file that the archive has brought before`)
    for (let count = 1; count < parts.length; count++) {
      const folder = await unlessMissing(join(this.#folder, ...parts.slice(0, count)))
      if (folder?.isDirectory() !== true) throw refuse()
    }
    const file = parts.length === 0 ? undefined : await unlessMissing(join(this.#folder, ...parts))
    if (file?.isFile() !== true) throw refuse()
    try {
      await link(join(this.#folder, ...parts), path)
    } catch (error) {
      if (hasCode(error, 'EMLINK')) throw ArchiveInvalid(`${printable(target)} has too many hard links`)
      throw error
    }
  }
}

/** Pieces of zeros become holes: they take no space, neither here nor in the volume. */
async function writeSparsely (handle: FileHandle, content: AsyncIterable<Buffer>, sizeBytes: number, count: (bytes: number) => void): Promise<void> {
  let at = 0
  for await (const piece of content) {
    if (!isZero(piece)) {
      count(piece.length)
      await writeAll(handle, piece, at)
    }
    at += piece.length
  }
  await handle.truncate(sizeBytes)
}

async function writeAll (handle: FileHandle, piece: Buffer, at: number): Promise<void> {
  for (let done = 0; done < piece.length;) {
    const { bytesWritten } = await handle.write(piece, done, piece.length - done, at + done)
    done += bytesWritten
  }
}

const ZEROS = Object.freeze({ bytes: Buffer.alloc(CHUNK_BYTES) })

function isZero (piece: Buffer): boolean {
  return piece.length <= CHUNK_BYTES && piece.equals(ZEROS.bytes.subarray(0, piece.length))
}

async function unlessMissing (path: string): Promise<Awaited<ReturnType<typeof lstat>> | undefined> {
  try {
    return await lstat(path)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}
