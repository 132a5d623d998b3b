// One migrating process at a time, by a lock that ends with the process that holds it.
import type { Knex } from 'knex'
import { dialectOf, withoutDeadline } from './open.ts'
import { inTransaction } from './transaction.ts'

const LOCK_WAIT_SECONDS = 60

/**
 * Runs `work` on one connection while no other process migrates. On SQLite it is one transaction that holds the write lock,
 * so what `work` changes is there whole or not at all; MySQL's DDL commits by itself.
 */
export async function withMigrationLock<T> (database: Knex, work: (connection: Knex) => Promise<T>): Promise<T> {
  return dialectOf(database) === 'sqlite' ? await lockSqlite(database, work) : await withoutDeadline(database, async () => await lockMysql(database, work))
}

async function lockSqlite<T> (database: Knex, work: (connection: Knex) => Promise<T>): Promise<T> {
  return await inTransaction(database, async (trx) => {
    // A write as the first statement waits for the write lock; a write after a read can only fail. This write changes nothing.
    await trx.raw('PRAGMA user_version = 0')
    return await work(trx)
  })
}

async function lockMysql<T> (database: Knex, work: (connection: Knex) => Promise<T>): Promise<T> {
  // The lock belongs to a session, and a transaction is knex's way to stay on one connection.
  return await database.transaction(async (session) => {
    const name = 'CONCAT(\'berth:\', MD5(DATABASE()))'
    const [rows] = await session.raw(`SELECT GET_LOCK(${name}, ?) AS got`, [LOCK_WAIT_SECONDS])
    if (!(Array.isArray(rows) && rows[0]?.got === 1)) throw new Error(`another process is migrating the database for more than ${LOCK_WAIT_SECONDS} s`)
    try {
      await compareBytes(session)
      return await work(session)
    } finally {
      await session.raw(`SELECT RELEASE_LOCK(${name})`)
    }
  })
}

// MySQL compares strings without regard to case unless told otherwise; SQLite never does. New tables take the database's collation.
async function compareBytes (session: Knex): Promise<void> {
  const [rows] = await session.raw('SELECT @@collation_database AS collation, DATABASE() AS name')
  if (Array.isArray(rows) && rows[0]?.collation !== 'utf8mb4_bin') {
    await session.raw('ALTER DATABASE ?? CHARACTER SET utf8mb4 COLLATE utf8mb4_bin', [rows[0]?.name])
  }
}
