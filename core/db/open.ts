// Opens the one database that everything shares: SQLite in a file, or MySQL and MariaDB over TCP or a unix socket.
import knex, { type Knex } from 'knex'
import { withDeadlines, type Destroyable } from './deadline.ts'
import { SqliteClient } from './sqlite-client.ts'

/** How many connections one server process holds on MySQL. */
const MYSQL_CONNECTIONS = 10
// SQLite waits for another process's write lock, and with it the whole event loop; writes take milliseconds.
const BUSY_TIMEOUT_MS = 2000
const ACQUIRE_TIMEOUT_MS = 10_000
const CONNECT_TIMEOUT_MS = 5_000
const STATEMENT_TIMEOUT_MS = 10_000
// Shorter than a statement's deadline, so that the database server gives up first and says why.
const LOCK_WAIT_SECONDS = 8

/** handles whose statements have no deadline, with the number of callers that asked for that */
const unhurried = new WeakMap<object, number>()

export type Dialect = 'sqlite' | 'mysql'

/**
 * Opens a database; nothing is connected before the first query.
 * `sqlite:PATH`, or `mysql://user:password@host:port/name`, there with `?socketPath=/run/mysqld/mysqld.sock` for a unix socket.
 */
export function openDatabase (url: string): Knex {
  if (url.startsWith('sqlite:')) return openSqlite(url.slice('sqlite:'.length))
  if (url.startsWith('mysql:') || url.startsWith('mariadb:')) return openMysql(new URL(url))
  throw new Error('the database URL must begin with sqlite: or mysql://')
}

/** Which SQL this database speaks, for the few places where the two differ. */
export function dialectOf (database: Pick<Knex, 'client'>): Dialect {
  return database.client.config.client === 'mysql2' ? 'mysql' : 'sqlite'
}

/** Statements of `work` have no deadline: a migration may rewrite a large table. Until it ends this applies to every user of this handle. */
export async function withoutDeadline<T> (database: Knex, work: () => Promise<T>): Promise<T> {
  const key: object = database.client.config
  unhurried.set(key, (unhurried.get(key) ?? 0) + 1)
  try {
    return await work()
  } finally {
    unhurried.set(key, (unhurried.get(key) ?? 1) - 1)
  }
}

function openSqlite (path: string): Knex {
  if (path === '') throw new Error('the database URL sqlite: lacks a path')
  return knex({
    client: SqliteClient,
    connection: { filename: path },
    useNullAsDefault: true,
    acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
    // keeps values out of error messages, and so out of logs
    compileSqlOnError: false,
    // One connection: the driver is synchronous, so more connections would only wait for each other's locks.
    pool: { min: 1, max: 1, afterCreate: prepareSqlite }
  })
}

interface SqliteConnection { pragma (text: string): unknown }

function prepareSqlite (connection: SqliteConnection, done: (error: Error | null, connection: SqliteConnection) => void): void {
  // FULL, not WAL's usual NORMAL: files are made durable before the row that names them is committed, and removed after the
  // row is. With NORMAL a power failure may bring a removed row back, and then the database names a file that is gone.
  const settings = [`busy_timeout = ${BUSY_TIMEOUT_MS}`, 'journal_mode = WAL', 'synchronous = FULL', 'foreign_keys = ON']
  try {
    for (const setting of settings) connection.pragma(setting)
    done(null, connection)
  } catch (error) {
    done(error instanceof Error ? error : new Error(String(error)), connection)
  }
}

function openMysql (url: URL): Knex {
  const name = decodeURIComponent(url.pathname.slice(1))
  if (name === '') throw new Error('the database URL lacks the name of the database')
  const socketPath = url.searchParams.get('socketPath')
  const database: Knex = knex({
    client: 'mysql2',
    // No charset: utf8mb4 is the driver's own choice, and knex would write it into each table and so undo the database's collation.
    connection: {
      ...(socketPath === null ? { host: url.hostname, port: url.port === '' ? 3306 : Number(url.port) } : { socketPath }),
      user: decodeURIComponent(url.username),
      password: decodeURIComponent(url.password),
      database: name,
      connectTimeout: CONNECT_TIMEOUT_MS,
      timezone: 'Z',
      supportBigNumbers: true
    },
    acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
    // keeps values out of error messages, and so out of logs
    compileSqlOnError: false,
    pool: {
      min: 0,
      max: MYSQL_CONNECTIONS,
      afterCreate: (connection: MysqlConnection, done: (error: Error | null, connection: MysqlConnection) => void) => {
        withDeadlines(connection, () => (unhurried.get(database.client.config) ?? 0) > 0 ? undefined : STATEMENT_TIMEOUT_MS)
        prepareMysql(connection, done)
      }
    }
  })
  return database
}

interface MysqlConnection extends Destroyable { query (sql: string, done: (error: Error | null) => void): void }

function prepareMysql (connection: MysqlConnection, done: (error: Error | null, connection: MysqlConnection) => void): void {
  // READ COMMITTED: fewer gap locks, so fewer deadlocks between writers. Strict mode: a value that does not fit is an error, not a cut.
  connection.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED', (error) => {
    if (error !== null) { done(error, connection); return }
    connection.query("SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
      (failure) => {
        if (failure !== null) { done(failure, connection); return }
        connection.query(`SET SESSION innodb_lock_wait_timeout = ${LOCK_WAIT_SECONDS}`, (last) => done(last, connection))
      })
  })
}
