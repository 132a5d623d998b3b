// Brings a kept copy of the database back. What it replaces is kept as a further copy. Killed at any moment, the same command does it again.
import { databaseUrl, sqliteFile } from '../../config/database-url.ts'
import type { Config } from '../../config/schema.ts'
import type { HostCommands } from '../../contracts/services.ts'
import { loadMysql, loadSqlite } from '../../db/copy/load-copy.ts'
import { openDatabase } from '../../db/open.ts'
import { isThere } from '../../fs/is-there.ts'
import { findHostId } from '../folder.ts'
import { withoutOtherHosts } from '../running-hosts.ts'
import { isUnfinished, markFinished, markUnfinished } from '../unfinished.ts'
import { closeCopies, keepCopy, wholeCopy, type Keeping } from './keep.ts'
import { copiesFolder, listCopies, type KeptCopy } from './kept.ts'

/** No copy has this number, or the copy is of another kind of database. */
export class NoSuchCopy extends Error {
  override readonly name = 'NoSuchCopy'
}

/** The caller holds the lock of the data folder. @throws NoSuchCopy, CopyFailed, RestoreUnfinished, DatabaseInUse */
export async function restoreCopy (number: number, { database: { url } }: Config, keeping: Omit<Keeping, 'url'>): Promise<KeptCopy> {
  const { dataDir, commands } = keeping
  const copy = (await listCopies(dataDir)).find((candidate) => candidate.number === number)
  if (copy === undefined) throw new NoSuchCopy(`there is no copy ${number} in ${copiesFolder(dataDir)}`)
  const [file, absolute] = [sqliteFile(url, dataDir), databaseUrl(url, dataDir)]
  if (copy.file.endsWith('.db') !== (file !== undefined)) throw new NoSuchCopy(`copy ${number} is of another kind of database than the configured one`)
  // A database that is half replaced is not worth a copy.
  const isAgain = await isUnfinished(dataDir, 'restore-database')
  const path = await wholeCopy(dataDir, copy)
  return await withoutOtherHosts(absolute, await findHostId(dataDir), async () => {
    if (!isAgain && (file === undefined || await isThere(file))) await keepPresent({ ...keeping, url: absolute }, number, file)
    await markUnfinished(dataDir, 'restore-database', String(number))
    await putBack(commands, path, { file, url: absolute, folder: copiesFolder(dataDir) })
    await closeCopies(dataDir)
    await markFinished(dataDir)
    return copy
  })
}

async function keepPresent (keeping: Keeping, number: number, file: string | undefined): Promise<void> {
  // A damaged database cannot be copied, and is no reason to do without an earlier one.
  const without = `To bring copy ${number} back without a copy of what is there, ${file === undefined ? 'drop the tables of the database' : `move ${file} to another folder`}, and run the command again`
  const database = openDatabase(keeping.url)
  try {
    await keepCopy(database, keeping, { reason: `before copy ${number} was brought back`, open: false, spared: number, without })
  } finally {
    await database.destroy()
  }
}

async function putBack (commands: HostCommands, path: string, { file, url, folder }: { file: string | undefined, url: string, folder: string }): Promise<void> {
  if (file === undefined) await loadMysql(commands, path, { url, folder })
  else await loadSqlite(path, file)
}
