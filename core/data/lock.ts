// Keeps two servers from using one data folder at the same time.
import { constants } from 'node:fs'
import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import knex, { type Knex } from 'knex'
import { hasCode } from '../errors/system-code.ts'
import { SqliteClient } from '../db/sqlite-client.ts'

export interface FolderLock { release (): Promise<void> }

/** Another server that runs uses the data folder. */
export class DataFolderInUse extends Error {
  override readonly name = 'DataFolderInUse'
}

/**
 * Takes the folder for this process. The lock is an open SQLite transaction, so the kernel holds it: it ends with the
 * process, however that ends, so there is no stale lock to detect, and two servers that start together cannot both get it.
 */
export async function lockDataFolder (dataDir: string): Promise<FolderLock> {
  await ownFile(join(dataDir, 'lock.db'))
  const database = knex({
    client: SqliteClient,
    connection: { filename: join(dataDir, 'lock.db') },
    useNullAsDefault: true,
    // The lock belongs to the connection, so there must be only one, and it must never be replaced.
    pool: { min: 1, max: 1 }
  })
  try {
    await database.raw('PRAGMA busy_timeout = 0')
    // Nothing is ever written, and a journal would need room, which a full disk does not have.
    await database.raw('PRAGMA journal_mode = MEMORY')
    await database.raw('BEGIN EXCLUSIVE')
  } catch (error) {
    await database.destroy()
    throw isBusy(error) ? new DataFolderInUse(await inUse(dataDir), { cause: error }) : error
  }
  await writeFile(pidFile(dataDir), `${process.pid}\n`)
  return { release: () => release(database) }
}

/** Makes the lock's file for the server alone: SQLite would make one that all users may read, and whoever may read it may lock it. */
async function ownFile (path: string): Promise<void> {
  const handle = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  try {
    await handle.chmod(0o600)
  } finally {
    await handle.close()
  }
}

async function release (database: Knex): Promise<void> {
  await database.raw('ROLLBACK')
  await database.destroy()
}

function isBusy (error: unknown): boolean {
  return hasCode(error, 'SQLITE_BUSY')
}

/** For the message only: the pid says who probably holds the lock, and no decision depends on it. */
function pidFile (dataDir: string): string {
  return join(dataDir, 'server.pid')
}

async function inUse (dataDir: string): Promise<string> {
  const pid = await readFile(pidFile(dataDir), 'utf8').then(text => text.trim(), () => '')
  return `the data folder ${dataDir} is in use by another server${pid === '' ? '' : ` (process ${pid})`}`
}
