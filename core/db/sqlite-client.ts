// The SQLite driver that fits this Node.
import { createRequire } from 'node:module'
import BetterSqlite3Client from 'knex/lib/dialects/better-sqlite3/index.js'

const require = createRequire(import.meta.url)
// Version 13 brings its binary along and needs Node 22: on Node 20 it ends the process. Version 12 is compiled, and ends the process on Node 24.19 and later.
const DRIVER = Number(process.versions.node.split('.')[0]) >= 22 ? 'better-sqlite3-napi' : 'better-sqlite3'

/** What knex takes as `client`. */
export class SqliteClient extends BetterSqlite3Client {
  override _driver (): unknown {
    return require(DRIVER)
  }
}
