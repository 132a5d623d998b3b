// The disk space of all files below a folder, counted as they change. A folder that has changed says so by its time of change, and files of images and layers are written once; so only what is new, or
// was changed a short while ago, is looked at again. Once an hour everything is.
import type { Stats } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'

/** Until then a file may still be written, and a folder may change again within the same tick of the file system's clock. */
const YOUNG_MS = 60_000
const COMPLETE_MS = 60 * 60_000

interface Files {
  /** how many are written no more */
  readonly old: number
  /** of those */
  readonly oldBytes: number
  /** names of the others */
  readonly young: readonly string[]
  /** of all */
  readonly bytes: number
}

interface Folder {
  readonly changedAt: number
  readonly files: Files
  /** by name */
  readonly folders: Map<string, Folder>
  /** names of those that do not rest */
  readonly lively: readonly string[]
  /** of everything below it */
  readonly bytes: number
  /** It holds old files alone, one at least, and is looked at when the folder that holds it has changed: nothing comes into it any more, but there may be another in its place. What holds nothing may be filled at any time. */
  readonly rests: boolean
}

const NO_FILES: Files = { old: 0, oldBytes: 0, young: [], bytes: 0 }
/** Most folders hold files alone. */
const NO_FOLDERS = new Map<string, Folder>()
const GONE: Folder = { changedAt: 0, files: NO_FILES, folders: NO_FOLDERS, lively: [], bytes: 0, rests: false }

export class CountedTree {
  readonly #path: string
  readonly #clock: () => number
  #known: Folder | undefined
  #completeAt = 0

  /** @param clock that of the file system, ms */
  constructor (path: string, clock: () => number = Date.now) {
    this.#path = path
    this.#clock = clock
  }

  /** Not to be called again before it has returned. */
  async bytes (): Promise<number> {
    const now = this.#clock()
    if (now - this.#completeAt >= COMPLETE_MS || now < this.#completeAt) {
      this.#known = undefined
      this.#completeAt = now
    }
    this.#known = await look(this.#path, this.#known, now - YOUNG_MS)
    return this.#known.bytes
  }
}

/** @param settled what was changed later is young */
async function look (path: string, known: Folder | undefined, settled: number): Promise<Folder> {
  // Before its entries are read: what comes into it meanwhile is found the next time.
  const changedAt = (await lookAt(path))?.ctimeMs
  if (changedAt === undefined) return GONE
  return known?.changedAt === changedAt && changedAt <= settled ? await lookAgain(path, known, settled) : await lookAnew(path, known, changedAt, settled)
}

/** The entries may be others. */
async function lookAnew (path: string, known: Folder | undefined, changedAt: number, settled: number): Promise<Folder> {
  const entries = await unlessGone(async () => await readdir(path, { withFileTypes: true }), [])
  const files = await filesIn(path, entries.filter((entry) => entry.isFile()).map(({ name }) => name), settled)
  const folders = new Map<string, Folder>()
  let below = 0
  // One after the other, here and elsewhere: this is not urgent, and must not slow down requests.
  for (const { name } of entries.filter((entry) => entry.isDirectory())) {
    // Those that rest, too: there may be another in the place of one.
    const folder = await look(join(path, name), known?.folders.get(name), settled)
    folders.set(name, folder)
    below += folder.bytes
  }
  return folderOf({ changedAt, files, folders: folders.size === 0 ? NO_FOLDERS : folders }, below, { lively: [...folders.keys()], settled })
}

/** The entries are the same. */
async function lookAgain (path: string, { changedAt, files: before, folders, lively, bytes }: Folder, settled: number): Promise<Folder> {
  const young = await filesIn(path, before.young, settled)
  const files = { old: before.old + young.old, oldBytes: before.oldBytes + young.oldBytes, young: young.young, bytes: before.oldBytes + young.bytes }
  let below = bytes - before.bytes
  for (const name of lively) {
    const known = folders.get(name)
    const folder = await look(join(path, name), known, settled)
    folders.set(name, folder)
    below += folder.bytes - (known?.bytes ?? 0)
  }
  return folderOf({ changedAt, files, folders }, below, { lively, settled })
}

function folderOf (found: Pick<Folder, 'changedAt' | 'files' | 'folders'>, below: number, { lively, settled }: { readonly lively: readonly string[], readonly settled: number }): Folder {
  const { changedAt, files, folders } = found
  return {
    ...found,
    lively: lively.filter((name) => folders.get(name)?.rests !== true),
    bytes: files.bytes + below,
    rests: folders.size === 0 && files.old > 0 && files.young.length === 0 && changedAt <= settled
  }
}

async function filesIn (path: string, names: readonly string[], settled: number): Promise<Files> {
  let [old, oldBytes, youngBytes] = [0, 0, 0]
  const young: string[] = []
  for (const name of names) {
    const file = await lookAt(join(path, name))
    if (file === undefined) continue
    const bytes = file.blocks * 512
    if (file.ctimeMs <= settled) {
      old++
      oldBytes += bytes
      continue
    }
    youngBytes += bytes
    young.push(name)
  }
  return { old, oldBytes, young, bytes: oldBytes + youngBytes }
}

async function lookAt (path: string): Promise<Stats | undefined> {
  return await unlessGone(async () => await lstat(path), undefined)
}

async function unlessGone<T> (read: () => Promise<T>, otherwise: T): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return otherwise
    throw error
  }
}
