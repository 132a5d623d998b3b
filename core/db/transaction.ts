// Transactions that are repeated when two writers conflict.
import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'

// On a busy host a writer may lose more than five times in a row.
const MAX_ATTEMPTS = 8
/** An attempt may have waited for a lock of MariaDB for 8 s. Whoever holds it may hold it for hours, and a caller is told that the database is busy before it gives up, after a minute. More than all attempts with SQLite take, at 2 s each: on a host with a busy disk a writer has lost five in a row to others that went on. */
const NO_ATTEMPT_AFTER_MS = 30_000
const FIRST_PAUSE_MS = 10
const LONGEST_PAUSE_MS = 500
// MySQL breaks a deadlock by failing one side; SQLite refuses a reader that would overwrite another process's commit.
const TRANSIENT = new Set(['ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT', 'SQLITE_BUSY', 'SQLITE_BUSY_SNAPSHOT', 'SQLITE_BUSY_RECOVERY'])
const DUPLICATE = new Set(['ER_DUP_ENTRY', 'SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_CONSTRAINT_PRIMARYKEY'])

/**
 * Runs `work` in one transaction and commits it. When another writer got in the way, the whole of `work` runs again, so it
 * must do nothing but queries on `trx`.
 */
export async function inTransaction<T> (database: Knex, work: (trx: Knex.Transaction) => Promise<T>): Promise<T> {
  const began = performance.now()
  for (let attempt = 1; ; attempt++) {
    try {
      return await database.transaction(work)
    } catch (error) {
      const isLast = attempt === MAX_ATTEMPTS || performance.now() - began > NO_ATTEMPT_AFTER_MS
      if (isLast || !TRANSIENT.has(codeOf(error))) throw error
      // A random pause, so that the two writers do not meet again at the same moment.
      await delay(Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS) * Math.random())
    }
  }
}

/** Whether a query failed because a unique value is taken. */
export function isDuplicate (error: unknown): boolean {
  return DUPLICATE.has(codeOf(error))
}

function codeOf (error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}
