// Chooses the SQLite driver that works on this Node.
import { createRequire } from 'node:module'
import BetterSqlite3Client from 'knex/lib/dialects/better-sqlite3/index.js'

const require = createRequire(import.meta.url)
// Version 13 brings its binary along and needs Node-API 10, which came with Node 22.14: on an older Node it ends the process. Version 12 is compiled, and ends the process on Node 24.19 and later.
// `libsql` and `@photostructure/sqlite` bring a binary for Node 20, too, and were not taken: their close() leaves the file open until prepared statements are collected as garbage.
const DRIVER = Number(process.versions.napi) >= 10 ? 'better-sqlite3-napi' : 'better-sqlite3'

/** The value of knex's `client`. */
export class SqliteClient extends BetterSqlite3Client {
  override _driver (): unknown {
    return require(DRIVER)
  }
}
