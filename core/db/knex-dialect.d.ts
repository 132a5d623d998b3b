// knex's own client for better-sqlite3, which its types do not declare.
declare module 'knex/lib/dialects/better-sqlite3/index.js' {
  import type { Knex } from 'knex'
  class BetterSqlite3Client extends Knex.Client {
    _driver (): unknown
  }
  export = BetterSqlite3Client
}
