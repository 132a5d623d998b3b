// Takes an installation back by its journal: one that failed, or that was cut off.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { removeTree, renameDurably, syncFolder } from '../../core/fs/durable.ts'
import { isThere } from '../../core/fs/is-there.ts'
import { unitsOf } from './files.ts'
import { readJournal, removeAsides, removeJournal, type Journal } from './journal.ts'
import { asideOf, freshOf, removeFolders } from './place.ts'
import { PROGRAM, PROXY_DATA, USER } from './places.ts'
import type { System } from './system.ts'

/**
 * Settles what an earlier installation left when it was cut off. Its journal stays: services and database may be those of either version, until the caller has seen to them.
 * @returns the journal of one that was taken back
 */
export async function settleCutOff (root: string, system: System | undefined, say: (line: string) => void): Promise<Journal | undefined> {
  const journal = await readJournal(root)
  if (journal?.isDone === false) {
    say('an earlier installation was cut off: it is taken back first')
    await takeBack(root, system, journal)
    return journal
  }
  // An installer from before there was a journal may have moved the program away, and put nothing in its place.
  const program = join(root, PROGRAM)
  if (journal === undefined && !await isThere(program) && await isThere(asideOf(program))) await renameDurably(asideOf(program), program)
  if (journal !== undefined) await removeAsides(root, journal)
  await removeJournal(root)
  return undefined
}

/** All but the services that run, and the database. May be done again at any time. */
export async function takeBack (root: string, system: System | undefined, journal: Journal): Promise<void> {
  const { replaced, added, configs, folders, first } = journal
  const units: string[] = []
  for (const path of added) if (await isThere(join(root, path))) units.push(...unitsOf([path]))
  // Before their files are removed.
  if (system !== undefined && units.length > 0) await system.disable(units)
  for (const path of [...replaced, ...added, ...Object.keys(configs)]) await removeTree(freshOf(join(root, path)))
  for (const path of replaced) await returnAside(join(root, path))
  for (const path of added) await removeDurably(join(root, path))
  for (const [path, sha256] of Object.entries(configs)) if (await hasDigest(join(root, path), sha256)) await removeDurably(join(root, path))
  await removeFolders(root, [...folders, ...first?.folders ?? []])
  // A folder that has data stays, and so does the user that owns it.
  if (first?.makesUser === true && !await isThere(join(root, PROXY_DATA))) await system?.removeUser(USER)
}

async function returnAside (target: string): Promise<void> {
  if (!await isThere(asideOf(target))) return
  await removeTree(target)
  await renameDurably(asideOf(target), target)
}

async function removeDurably (path: string): Promise<void> {
  if (!await isThere(path)) return
  await removeTree(path)
  await syncFolder(dirname(path))
}

async function hasDigest (path: string, sha256: string): Promise<boolean> {
  return await isThere(path) && digestOf(await readFile(path)) === sha256
}

export function digestOf (content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}
