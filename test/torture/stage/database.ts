// The database under torture: SQLite on the disk of the data folder, or a MariaDB of its own, which can hang.
import { join } from 'node:path'
import type { Knex } from 'knex'
import { openDatabase } from '../../../core/db/open.ts'
import { hangProcess, mariadbUrl, startMariadb } from '../../helpers/mariadb-server.ts'

export interface TorturedDatabase {
  readonly url: string
  /** Makes it hang; what it gives lets it go on. Only where it is a process. */
  readonly hang?: () => Promise<() => void>
  /** its process */
  readonly pid?: number
  stop (): Promise<void>
}

export function onSqlite (dataDir: string): TorturedDatabase {
  return { url: `sqlite:${join(dataDir, 'berth.db')}`, stop: async () => undefined }
}

export async function onMariadb (): Promise<TorturedDatabase> {
  const { socketPath, pid, stop } = await startMariadb()
  await query(mariadbUrl(socketPath, 'information_schema'), async (admin) => { await admin.raw('CREATE DATABASE torture') })
  return { url: mariadbUrl(socketPath, 'torture'), pid, stop, hang: async () => await hangProcess(pid) }
}

/** One look at a database with a handle of its own, which nobody has to close. */
export async function query<T> (url: string, look: (database: Knex) => Promise<T>): Promise<T> {
  const database = openDatabase(url)
  try {
    return await look(database)
  } finally {
    await database.destroy()
  }
}
