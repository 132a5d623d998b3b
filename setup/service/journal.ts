// The journal beside the program: what an installation that goes on may change, from before its first change until nothing of it is left to be removed.
import { rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { removeTree, syncFolder, writeFileDurably } from '../../core/fs/durable.ts'
import { isThere } from '../../core/fs/is-there.ts'
import { namesIn } from '../../core/fs/names-in.ts'
import { readIfThere } from '../../core/fs/read-if-there.ts'
import { asideOf, makeFolders } from './place.ts'
import { JOURNAL } from './places.ts'

/**
 * How an installation survives a kill, or a power cut, between any two of its steps:
 * 1. What an earlier one left is settled, and nothing stands aside. This journal is written durably, before the first change.
 * 2. What was there is set aside by a rename, and the new one comes by a rename: so each path is as it was, is only aside, or is aside and new. A path of `added` has nothing aside.
 * 3. All of it is on disk before services are restarted. When they are up, the journal is replaced by one that says `isDone`.
 * 4. What stands aside is removed, and then the journal.
 *
 * A journal that is not done is taken back (take-back.ts): what is aside returns, `added` goes. Each step of that is one that may have been done before, and the journal stays until all are, or until the next
 * installation's replaces it, so a kill there means that it is done again. A journal that is done means step 4.
 */
export interface Journal {
  /** The new version works. */
  readonly isDone: boolean
  /** paths, without the root, of what was there before, and may be set aside */
  readonly replaced: readonly string[]
  /** of what was not there before */
  readonly added: readonly string[]
  /** of configuration files that were not there before, with the SHA-256 of what is written: one that differs is an operator's */
  readonly configs: Readonly<Record<string, string>>
  /** folders that were not there before, outermost first */
  readonly folders: readonly string[]
  /** of a first installation into a running system */
  readonly first?: {
    /** folders of data that were not there before */
    readonly folders: readonly string[]
    readonly makesUser: boolean
  }
  /** number of the newest copy of the database before the new server could change it; absent: there is no database to bring back */
  readonly newestCopy?: number
}

/** `undefined` when no installation goes on, and none was cut off. */
export async function readJournal (root: string): Promise<Journal | undefined> {
  const text = await readIfThere(join(root, JOURNAL))
  return text === undefined ? undefined : JSON.parse(text) as Journal
}

export async function writeJournal (root: string, journal: Journal): Promise<void> {
  await makeFolders(root, [dirname(JOURNAL)])
  await writeFileDurably(join(root, JOURNAL), `${JSON.stringify(journal, null, 2)}\n`)
}

/** Removes what stands aside, once it is of no more use, so that it does not come back after a power cut either. */
export async function removeAsides (root: string, { replaced, added }: Journal): Promise<void> {
  const paths = [...replaced, ...added].map(path => join(root, path))
  for (const path of paths) await removeTree(asideOf(path))
  for (const folder of new Set(paths.map(path => dirname(path)))) await syncIfThere(folder)
}

export async function removeJournal (root: string): Promise<void> {
  const path = join(root, JOURNAL)
  // Also those that a kill left while it was written.
  for (const name of await namesIn(dirname(path))) if (name.startsWith(`.${basename(path)}.`)) await rm(join(dirname(path), name), { force: true })
  await rm(path, { force: true })
  await syncIfThere(dirname(path))
}

async function syncIfThere (folder: string): Promise<void> {
  if (await isThere(folder)) await syncFolder(folder)
}
