// A change whose answer is lost and which MariaDB commits only later, as where the network or the machine of the database hangs: what was sent is delivered, whoever has given up by then.
import { existsSync } from 'node:fs'
import type { Knex } from 'knex'
import type { Test } from 'tap'
import type { Change, Journal } from '../../core/db/changes.ts'
import { DatabaseUnavailable } from '../../core/db/deadline.ts'
import { openDatabase } from '../../core/db/open.ts'
import { eventually } from './eventually.ts'
import { createMariadbDatabase } from './mariadb.ts'
import { PROGRAM } from './mariadb-server.ts'

const LATE_S = 1

export interface LateCommit {
  readonly database: Knex
  /** Makes one change that fails at once, and is committed a second later. */
  lose (change: () => Promise<unknown>): Promise<void>
  /** Resolves once that is committed. */
  committed (): Promise<void>
  readonly journal: Journal
  /** what was written to the journal, as `created a`; what was lost, too */
  readonly told: readonly string[]
}

/** Runs a test on an empty database of a MariaDB. */
export function withLateCommit (t: Test, name: string, fn: (t: Test, late: LateCommit) => Promise<void>): void {
  t.test(name, existsSync(PROGRAM) ? {} : { skip: `${PROGRAM} is missing: install the package mariadb-server` }, async (t) => {
    const url = await createMariadbDatabase()
    const [database, observer] = [openDatabase(url), openDatabase(url)]
    const told: string[] = []
    let isLosing = false
    let lost = 0
    loseCommits(database, (connection) => {
      if (!isLosing) return false
      isLosing = false
      lost = connection.threadId
      return true
    })
    try {
      await fn(t, {
        database,
        told,
        journal: { know () {}, progress () {}, async write (_trx, _kind, changes: readonly Change[]) { told.push(...changes.map(({ action, id }) => `${action} ${id}`)) } },
        async lose (change) {
          isLosing = true
          await t.rejects(change(), { code: 'database_unavailable' })
        },
        committed: async () => {
          await eventually('it is committed', async () => {
            const [rows] = await observer.raw('SELECT COUNT(*) AS count FROM information_schema.processlist WHERE id = ?', [lost])
            return Number(rows[0].count) === 0
          }, { limitMs: 20_000 })
        }
      })
    } finally {
      await Promise.all([database.destroy(), observer.destroy()])
    }
  })
}

interface Connection {
  readonly threadId: number
  query (...args: unknown[]): unknown
  destroy (): void
}

/** @param isLost asked at each statement that commits something */
function loseCommits (database: Knex, isLost: (connection: Connection) => boolean): void {
  const client: { acquireRawConnection (): Promise<Connection> } = database.client
  const acquire = client.acquireRawConnection.bind(client)
  client.acquireRawConnection = async () => {
    const connection = await acquire()
    const query = connection.query.bind(connection)
    let isTransaction = false
    connection.query = (...args) => {
      const [first] = args
      const text = typeof first === 'string' ? first : String(Object(first).sql)
      const commits = /^commit/i.test(text) || (!isTransaction && /^(?:insert|update|delete)/i.test(text))
      if (/^begin/i.test(text)) isTransaction = true
      else if (/^(?:commit|rollback)/i.test(text)) isTransaction = false
      const done = args.at(-1)
      if (!commits || !isLost(connection) || typeof done !== 'function') return query(...args)
      const late = `BEGIN NOT ATOMIC DO SLEEP(${LATE_S}); ${text.replace(/;$/, '')}; END`
      const sent = query(typeof first === 'string' ? late : { ...Object(first), sql: late }, ...args.slice(1, -1), () => {})
      // As at a statement that misses its deadline: what was written is still delivered.
      connection.destroy()
      setImmediate(() => { Reflect.apply(done, undefined, [DatabaseUnavailable()]) })
      return sent
    }
    return connection
  }
}
