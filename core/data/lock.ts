// Keeps two servers from using one data folder at the same time.
import { constants } from 'node:fs'
import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import knex, { type Knex } from 'knex'
import { hasCode } from '../errors/system-code.ts'
import { SqliteClient } from '../db/sqlite-client.ts'

export interface FolderLock { release (): Promise<void> }

/** The data folder belongs to another server that runs. */
export class DataFolderInUse extends Error {
  override readonly name = 'DataFolderInUse'
}

/**
 * Takes the folder for this process. The lock is an open SQLite transaction, so the kernel holds it: it ends with the
 * process, however that ends, there is no stale lock to judge, and two servers that start together cannot both win.
 */
export async function lockDataFolder (dataDir: string): Promise<FolderLock> {
  await ownFile(join(dataDir, 'lock.db'))
  const database = knex({
    client: SqliteClient,
    connection: { filename: join(dataDir, 'lock.db') },
    useNullAsDefault: true,
    // The lock belongs to the connection, which must therefore be the only one and never be replaced.
    pool: { min: 1, max: 1 }
  })
  try {
    await database.raw('PRAGMA busy_timeout = 0')
    // Nothing is ever written, and a journal would need room, which a full disk has not.
    await database.raw('PRAGMA journal_mode = MEMORY')
    await database.raw('BEGIN EXCLUSIVE')
  } catch (error) {
    await database.destroy()
    throw isBusy(error) ? new DataFolderInUse(await inUse(dataDir), { cause: error }) : error
  }
  await writeFile(pidFile(dataDir), `${process.pid}\n`)
  return { release: () => release(database) }
}

/** The lock's file, for the server alone: SQLite makes one that all may read, and whoever may read it may lock it. */
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

/** Only for the message: the pid says who probably holds the lock, and nothing is decided by it. */
function pidFile (dataDir: string): string {
  return join(dataDir, 'server.pid')
}

async function inUse (dataDir: string): Promise<string> {
  const pid = await readFile(pidFile(dataDir), 'utf8').then(text => text.trim(), () => '')
  return `the data folder ${dataDir} is in use by another server${pid === '' ? '' : ` (process ${pid})`}`
}
