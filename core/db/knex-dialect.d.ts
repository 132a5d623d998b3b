// knex's own client for better-sqlite3, of which its types say nothing.
declare module 'knex/lib/dialects/better-sqlite3/index.js' {
  import type { Knex } from 'knex'
  export default class extends Knex.Client {
    _driver (): unknown
  }
}
