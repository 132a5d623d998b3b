// Keeps a copy of the database before a change that an older version cannot undo.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Knex } from 'knex'
import type { HostCommands } from '../../contracts/services.ts'
import { copyBytes, copySuffix, writeCopy } from '../../db/copy/write-copy.ts'
import type { DiskSpace } from '../../fs/disk-space.ts'
import { giveToOwner } from '../../fs/owner.ts'
import { version } from '../../version.ts'
import { checksum, copiesFolder, listCopies, prepareCopies, removeCopy, writeNote, type KeptCopy } from './kept.ts'

/** The copy could not be made, so nothing was changed. */
export class CopyFailed extends Error {
  override readonly name = 'CopyFailed'
}

export interface Keeping {
  readonly dataDir: string
  /** of the database, absolute */
  readonly url: string
  readonly commands: HostCommands
  readonly disk: DiskSpace
  /** how many copies stay, this one included; at least 1 */
  readonly most: number
}

/** @param pending the migrations that are about to change the database @param spared a copy that stays, too @param without says how to go on without this copy @throws CopyFailed that says why */
export async function keepCopy (database: Knex, { dataDir, url, commands, disk, most }: Keeping, { reason, open, pending, spared, without }: { reason: string, open: boolean, pending?: string[], spared?: number | undefined, without?: string }): Promise<KeptCopy> {
  const folder = await prepareCopies(dataDir)
  const before = await listCopies(dataDir)
  const number = (before.at(-1)?.number ?? 0) + 1
  const file = `${number}${copySuffix(database)}`
  const path = join(folder, file)
  try {
    await disk.check({ bytes: await copyBytes(database), inodes: 2 })
    await writeCopy(database, { url, commands, to: path })
    await giveToOwner(path)
  } catch (error) {
    throw new CopyFailed(`the database could not be copied (${reason}), so it was left as it is: ${error instanceof Error ? error.message : String(error)}${without === undefined ? '' : `\n${without}`}`, { cause: error })
  }
  const copy: KeptCopy = { number, file, madeAt: new Date().toISOString(), madeBy: version, reason, bytes: (await stat(path)).size, sha256: await checksum(path), open, ...pending === undefined ? {} : { pending } }
  await writeNote(dataDir, copy)
  const others = before.filter((other) => other.number !== spared)
  for (const old of others.slice(0, Math.max(0, others.length + 1 - most))) await removeCopy(dataDir, old)
  return copy
}

/** The file of a copy, after its checksum was compared. @throws Error that says what is wrong with it */
export async function wholeCopy (dataDir: string, copy: KeptCopy): Promise<string> {
  const path = join(copiesFolder(dataDir), copy.file)
  if (await checksum(path) !== copy.sha256) throw new Error(`copy ${copy.number} is damaged: ${path} is not what was written there`)
  return path
}

/** Marks all copies as closed: the change that they were made for is finished. */
export async function closeCopies (dataDir: string): Promise<void> {
  for (const copy of await listCopies(dataDir)) if (copy.open) await writeNote(dataDir, { ...copy, open: false })
}
