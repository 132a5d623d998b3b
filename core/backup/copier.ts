// Copies the content of a data folder in several passes while it changes; each pass copies only what is new.
import type { BigIntStats } from 'node:fs'
import { copyFile, lstat, mkdir, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { HostCommands } from '../contracts/services.ts'
import type { DiskSpace } from '../fs/disk-space.ts'
import { copySparse, sharesBlocks } from '../fs/sparse-copy.ts'
import { checksumOf } from './checksum.ts'
import type { Entry, FileEntry } from './manifest.ts'
import { findAll, furtherNames, ifThere, type Found } from './tree.ts'
import { workplaces } from './workplaces.ts'

/** A file that a VM writes all the time would never be finished. */
const MOST_COPIES = 3
/** Looking for holes takes a process, which a smaller file is not worth. */
const LARGE_BYTES = 2n ** 20n
/** The file system's clock may stand still for this long: two changes within it look like one. */
const CLOCK_STEP_NS = 50_000_000n
const BLOCK_BYTES = 512n
/** name of a copy that is made to find out what it takes, which no file of a data folder has */
const PROBE = '.shares-blocks'
const LOG = /\.log(?:\.1)?$/

interface Copied {
  readonly stats: BigIntStats
  /** after it was copied: what is written later is not in the copy */
  readonly mtimeNs: bigint
  readonly count: number
  readonly isTorn: boolean
  readonly isFresh: boolean
}

export interface CopierOptions {
  readonly dataDir: string
  readonly target: string
  /** paths below the data folder */
  readonly leftOut: ReadonlySet<string>
  readonly commands: HostCommands
  /** the disk of the target */
  readonly disk: DiskSpace
}

export class Copier {
  readonly #options: CopierOptions
  readonly #copied = new Map<string, Copied>()
  #found: readonly Found[] = []
  /** names of files that have been copied by another name, with that */
  #further: ReadonlyMap<string, string> = new Map()
  /** folders of the data folder that processes worked in when the last pass began */
  #live: ReadonlySet<string> = new Set()
  /** The folders that these are in: a VMM works in a folder beside its disks. */
  #homes: ReadonlySet<string> = new Set()

  constructor (options: CopierOptions) {
    this.#options = options
  }

  /** Brings the copy up to date with what is there now. */
  async pass (): Promise<void> {
    const { dataDir, leftOut, disk } = this.#options
    this.#live = new Set(await workplaces(dataDir))
    this.#homes = new Set([...this.#live].map((folder) => dirname(folder)))
    this.#found = await findAll(dataDir, leftOut)
    this.#further = furtherNames(this.#found)
    await this.#removeGone()
    const due = this.#found.filter((found) => this.#isDue(found))
    await disk.check({ bytes: Number(await this.#roomFor(due)), inodes: due.filter(({ path }) => !this.#copied.has(path)).length })
    for (const found of due) await this.#copy(found)
  }

  /** The most bytes that the copies take beyond their former ones while they are made, one after the other: each former one goes before the new one is written. */
  async #roomFor (due: readonly Found[]): Promise<bigint> {
    const shares = new Map<bigint, boolean>()
    let [now, most] = [0n, 0n]
    for (const found of due) {
      const { path, stats } = found
      if (!stats.isFile()) continue
      if (this.#copied.has(path)) now -= await this.#copiedBytes(path)
      // One of each file system tells for the others, as a data folder may have several mounted in it.
      if (isLarge(stats) && !shares.has(stats.dev)) shares.set(stats.dev, await this.#shares(path))
      if (!isLarge(stats) || shares.get(stats.dev) !== true) now += stats.blocks * BLOCK_BYTES
      if (now > most) most = now
    }
    return most
  }

  async #copiedBytes (path: string): Promise<bigint> {
    const copy = await ifThere(async () => await lstat(this.#at(path), { bigint: true }))
    return copy === undefined ? 0n : copy.blocks * BLOCK_BYTES
  }

  async #shares (path: string): Promise<boolean> {
    return await ifThere(async () => await sharesBlocks({ from: join(this.#options.dataDir, path), to: this.#at(PROBE) })) === true
  }

  /**
   * A path that has gone or become another file since the last pass began. What has come, or is written into a file that stays, counts for nothing here: whatever tells that such a file counts is a row, or a file that
   * takes the place of another.
   * Nor do logs, which get new files as often as a guest likes, and the folders in which processes worked all the time, whose files are as a power failure would leave them.
   */
  async changed (): Promise<string | undefined> {
    const { dataDir, leftOut } = this.#options
    const found = await findAll(dataDir, leftOut)
    const live = new Set((await workplaces(dataDir)).filter((folder) => this.#live.has(folder)))
    const [before, now] = [filesOf(this.#found, this.#further, live), filesOf(found, furtherNames(found), live)]
    return [...before.keys()].find((path) => before.get(path) !== now.get(path))
  }

  /** The entries after the last pass, with the checksums of the copies. */
  async result (): Promise<{ entries: Entry[], torn: string[] }> {
    const entries: Entry[] = []
    const files = new Map<string, FileEntry>()
    for (const found of this.#found) {
      const name = this.#further.get(found.path)
      const file = name === undefined ? undefined : files.get(name)
      const entry = file === undefined ? await this.#entryOf(found) : { ...file, path: found.path, sameAs: file.path }
      if (entry === undefined) continue
      entries.push(entry)
      if (entry.kind === 'file') files.set(entry.path, entry)
    }
    return { entries, torn: entries.filter(({ path }) => this.#copied.get(path)?.isTorn === true).map(({ path }) => path) }
  }

  async #entryOf ({ path, stats, target }: Found): Promise<Entry | undefined> {
    const made = this.#copied.get(path)
    if (made === undefined) return undefined
    const common = { path, mode: Number(stats.mode & 0o7777n), uid: Number(stats.uid), gid: Number(stats.gid) }
    if (stats.isDirectory()) return { kind: 'folder', ...common }
    if (target !== undefined) return { kind: 'link', ...common, target }
    const copy = this.#at(path)
    const copied = await ifThere(async () => await lstat(copy))
    return copied === undefined ? undefined : { kind: 'file', ...common, mtimeNs: String(made.mtimeNs > 0n ? made.mtimeNs : 0n), bytes: copied.size, checksum: await checksumOf(copy) }
  }

  #isDue ({ path, stats }: Found): boolean {
    if (this.#further.has(path)) return false
    const copied = this.#copied.get(path)
    if (copied === undefined) return true
    if (stats.isDirectory()) return false
    const isChanged = !isSame(copied.stats, stats)
    if (!isChanged && !copied.isFresh) return false
    return copied.count < MOST_COPIES || (isChanged && (copied.stats.ino !== stats.ino || !isBelow(path, this.#homes)))
  }

  async #copy ({ path, stats, target }: Found): Promise<void> {
    const { dataDir, commands } = this.#options
    const [from, to] = [join(dataDir, path), this.#at(path)]
    const count = (this.#copied.get(path)?.count ?? 0) + 1
    if (stats.isDirectory()) {
      await mkdir(to, { mode: 0o700 })
      this.#copied.set(path, { stats, mtimeNs: stats.mtimeNs, count, isTorn: false, isFresh: false })
      return
    }
    await rm(to, { force: true })
    // Noted before the copy, so that it is removed with its folder when the copy fails.
    this.#copied.set(path, { stats, mtimeNs: stats.mtimeNs, count, isTorn: true, isFresh: true })
    if (target !== undefined) await symlink(target, to)
    else await copyUnlessGone(commands, from, to, stats)
    const after = await ifThere(async () => await lstat(from, { bigint: true }))
    // A file that was only appended to, such as a log, is whole up to the copied length.
    const isTorn = after !== undefined && !isSame(stats, after) && !(after.ino === stats.ino && after.size > stats.size)
    this.#copied.set(path, { stats, mtimeNs: (after ?? stats).mtimeNs, count, isTorn, isFresh: BigInt(Date.now()) * 1_000_000n - stats.ctimeNs < CLOCK_STEP_NS })
  }

  /** Removes from the copy what the data folder no longer has, a file that has become a folder, and one that is another name now of what is copied elsewhere. */
  async #removeGone (): Promise<void> {
    const present = new Map(this.#found.map((found) => [found.path, found]))
    for (const [path, { stats }] of this.#copied) {
      const now = present.get(path)
      if (now !== undefined && kindOf(now.stats) === kindOf(stats) && !this.#further.has(path)) continue
      await rm(this.#at(path), { recursive: true, force: true })
      for (const inner of this.#copied.keys()) if (inner === path || inner.startsWith(`${path}/`)) this.#copied.delete(inner)
    }
  }

  #at (path: string): string {
    return join(this.#options.target, path)
  }
}

/** Which file stands where, without logs and what is below these folders. */
function filesOf (found: readonly Found[], further: ReadonlyMap<string, string>, without: ReadonlySet<string>): Map<string, string> {
  const outside = found.filter(({ path }) => !LOG.test(path) && !isBelow(path, without))
  return new Map(outside.map(({ path, stats }) => [path, `${kindOf(stats)} ${stats.ino} ${further.get(path) ?? ''}`]))
}

function isBelow (path: string, folders: ReadonlySet<string>): boolean {
  for (let end = path.indexOf('/'); end >= 0; end = path.indexOf('/', end + 1)) if (folders.has(path.slice(0, end))) return true
  return false
}

/** Copies a file. One that disappears meanwhile leaves the copy in the next pass. */
async function copyUnlessGone (commands: HostCommands, from: string, to: string, stats: BigIntStats): Promise<void> {
  try {
    if (!isLarge(stats)) await copyFile(from, to)
    else await copySparse(commands, from, to)
  } catch (error) {
    if (await ifThere(async () => await lstat(from)) !== undefined) throw error
  }
}

function isLarge ({ size }: BigIntStats): boolean {
  return size >= LARGE_BYTES
}

function isSame (a: BigIntStats, b: BigIntStats): boolean {
  return a.ino === b.ino && a.size === b.size && a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs
}

function kindOf (stats: BigIntStats): string {
  return stats.isDirectory() ? 'folder' : stats.isSymbolicLink() ? 'link' : 'file'
}
