// No query waits for a database that hangs: its connection is destroyed, and the caller gets an error.
import { defineError } from '../errors/define.ts'

/** The database does not answer, or cannot be reached: the statement may or may not have been executed. */
export const DatabaseUnavailable = defineError('database_unavailable', 'unavailable', () => 'the database does not answer; try again')

/** The part of a mysql2 connection that deadlines need. */
export interface Destroyable {
  query (...args: unknown[]): unknown
  destroy (): void
}

const CONNECTION_ERRORS = new Set(['PROTOCOL_CONNECTION_LOST', 'PROTOCOL_SEQUENCE_TIMEOUT', 'ER_SERVER_SHUTDOWN', 'ER_CON_COUNT_ERROR', 'ER_LOCK_WAIT_TIMEOUT', 'ER_LOCK_DEADLOCK', 'ER_QUERY_INTERRUPTED', 'ER_QUERY_TIMEOUT', 'SQLITE_BUSY', 'SQLITE_BUSY_SNAPSHOT', 'SQLITE_BUSY_RECOVERY'])
/** MariaDB's max_statement_time, for which the driver has no name */
const STATEMENT_TIMEOUT_ERRNO = 1969
const MOST_CAUSES = 8

/** Whether an error says that the database is away or too busy, rather than that a query was wrong. */
export function isDatabaseAway (error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth === MOST_CAUSES) return false
  if (DatabaseUnavailable.is(error) || error.name === 'KnexTimeoutError') return true
  if ('code' in error && CONNECTION_ERRORS.has(String(error.code))) return true
  if ('errno' in error && error.errno === STATEMENT_TIMEOUT_ERRNO) return true
  // mysql2 sets `fatal` on errors that end the connection: refused, reset, not answered in time.
  if ('fatal' in error && error.fatal === true) return true
  const within: readonly unknown[] = error instanceof AggregateError ? error.errors : []
  return [error.cause, ...within].some((inner) => isDatabaseAway(inner, depth + 1))
}

/**
 * Gives each query of a connection a deadline. A query that misses it fails with `DatabaseUnavailable` and its connection is destroyed, since nobody waits for a later answer.
 * @param deadlineMs called for each query; `undefined`: none
 */
export function withDeadlines (connection: Destroyable, deadlineMs: () => number | undefined): void {
  const query = connection.query.bind(connection)
  connection.query = (...args) => {
    const ms = deadlineMs()
    const done = args.at(-1)
    if (ms === undefined || typeof done !== 'function') return query(...args)
    let isOver = false
    const finish = (...outcome: unknown[]): void => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      Reflect.apply(done, undefined, outcome)
    }
    const timer = setTimeout(() => {
      connection.destroy()
      finish(DatabaseUnavailable())
    }, ms)
    return query(...args.slice(0, -1), finish)
  }
}
