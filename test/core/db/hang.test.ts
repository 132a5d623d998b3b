// A database that hangs, with a real MariaDB: callers hear of it soon, with 503, and the server works on as soon as it is back.
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { Type } from 'typebox'
import { buildApp } from '../../../core/app.ts'
import { DatabaseUnavailable, isDatabaseAway } from '../../../core/db/deadline.ts'
import { openDatabase } from '../../../core/db/open.ts'
import { inTransaction } from '../../../core/db/transaction.ts'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import { createMariadbDatabase, hangMariadb } from '../../helpers/mariadb.ts'

const skip = existsSync('/usr/sbin/mariadbd') ? false : 'install the package mariadb-server'
const KEY = 'a-key-for-the-test'

/** A route that asks the database, as nearly all do. */
const asking = definePlugin({
  manifest: { id: 'asking', provides: [], requires: ['database'], config: Type.Object({}, { additionalProperties: false }) },
  create: ({ database }) => ({
    async routes (http) {
      http.get('/asking', { config: { scope: 'resource:read' }, schema: { response: { 200: Type.Object({ one: Type.Integer() }, { additionalProperties: false }) } } },
        async () => {
          await database.raw('SELECT 1')
          return { one: 1 }
        })
    }
  })
})

t.test('while the database hangs /health and requests say 503 with Retry-After, and afterwards all is well without a restart', { skip }, async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'berth-hang-'))
  t.teardown(async () => { await rm(dataDir, { recursive: true, force: true }) })
  const url = await createMariadbDatabase()
  const lines: Record<string, unknown>[] = []
  const app = await buildApp({ server: { dataDir, listen: '127.0.0.1:0', apiKey: KEY, metrics: { listen: '127.0.0.1:0' } }, database: { url } }, {
    environment: {}, logStream: { write: (line) => { lines.push(JSON.parse(line)) } }, builtIns: pathToFileURL('/nonexistent/'), plugins: [asking]
  })
  t.teardown(async () => { await app.stop() })
  await app.start()
  const get = async (path: string): Promise<{ status: number, retryAfter: string | null, body: unknown }> => {
    const response = await fetch(app.address() + path, { headers: { authorization: `Bearer ${KEY}` } })
    return { status: response.status, retryAfter: response.headers.get('retry-after'), body: await response.json() }
  }
  const isUp = async (): Promise<string | undefined> => {
    const port = lines.find(({ msg }) => msg === 'metrics served')?.['port']
    return /^berth_database_up (.*)$/m.exec(await (await fetch(`http://127.0.0.1:${String(port)}/metrics`)).text())?.[1]
  }
  t.match(await get('/health'), { status: 200, body: { status: 'ok' } })
  t.equal(await isUp(), '1')
  t.match(await get('/asking'), { status: 200 })
  const resume = await hangMariadb()
  const away = { status: 503, retryAfter: '5', body: { code: 'database_unavailable', message: /the database does not answer/ } }
  t.match(await get('/health'), away)
  t.equal(await isUp(), '0', 'and so does the metric')
  // More than the pool holds: those that get no connection are told as well.
  for (const answer of await Promise.all(Array.from({ length: 15 }, async () => await get('/asking')))) t.match(answer, away)
  t.match(await get('/health'), away, 'also with no connection left from before')
  resume()
  for (let attempt = 0; (await get('/health')).status !== 200; attempt++) if (attempt === 30) throw new Error('it does not come back')
  t.match(await get('/asking'), { status: 200 })
  t.equal(await isUp(), '1')
})

t.test('a database that is gone is no fault of a query, and a wrong query no sign that it is gone', { skip }, async (t) => {
  const gone = openDatabase('mysql://root@127.0.0.1:1/nothing')
  t.equal(isDatabaseAway(await gone.raw('SELECT 1').catch((error: unknown) => error)), true)
  await gone.destroy()
  const there = openDatabase(await createMariadbDatabase())
  t.equal(isDatabaseAway(await there.raw('SELECT nonsense').catch((error: unknown) => error)), false)
  t.equal(isDatabaseAway(await there.raw('SELECT SLEEP(30)').catch((error: unknown) => error)), true, 'a statement that takes too long')
  t.match(await there.raw('SELECT 1 AS one'), [[{ one: 1 }]], 'the next one has a connection')
  await there.destroy()
  t.equal(isDatabaseAway(new Error('other', { cause: new Error('deeper') })), false)
})

t.test('a statement that the database itself has ended, after its operator\'s limit, is no fault of the query', { skip }, async (t) => {
  const database = openDatabase(await createMariadbDatabase())
  t.teardown(async () => { await database.destroy() })
  await database.transaction(async (session) => {
    await session.raw('SET SESSION max_statement_time = 0.1')
    t.equal(isDatabaseAway(await session.raw('SELECT SLEEP(5)').catch((error: unknown) => error)), true)
    await session.raw('SET SESSION max_statement_time = 0')
  })
})

t.test('a writer that was overtaken again and again is told that the database is busy', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-busy-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  const [one, other] = [openDatabase(`sqlite:${join(folder, 'x.db')}`), openDatabase(`sqlite:${join(folder, 'x.db')}`)]
  await one.raw('CREATE TABLE numbers (number INTEGER)')
  const overtaken = one.transaction(async (trx) => {
    await trx('numbers').first()
    await other('numbers').insert({ number: 1 })
    await trx('numbers').insert({ number: 2 })
  })
  const error: unknown = await overtaken.catch((reason: unknown) => reason)
  t.match(error, { code: 'SQLITE_BUSY_SNAPSHOT' })
  t.equal(isDatabaseAway(error), true)
  await Promise.all([one.destroy(), other.destroy()])
})

t.test('a writer that finds a lock held is told so after four waits for it at most, and not after eight', { skip }, async (t) => {
  const database = openDatabase(await createMariadbDatabase())
  t.teardown(async () => { await database.destroy() })
  await database.raw('CREATE TABLE numbers (number INTEGER PRIMARY KEY)')
  await database('numbers').insert({ number: 1 })
  const holder = await database.transaction()
  await holder('numbers').where({ number: 1 }).update({ number: 2 })
  let attempts = 0
  const waiting = inTransaction(database, async (trx) => {
    attempts++
    await trx('numbers').where({ number: 1 }).update({ number: 3 })
  })
  t.equal(isDatabaseAway(await waiting.catch((error: unknown) => error)), true)
  t.ok(attempts > 1 && attempts <= 4, `${attempts} waits`)
  await holder.rollback()
})

t.test('that the database is away is seen in an error that holds several', async (t) => {
  t.equal(isDatabaseAway(new AggregateError([new Error('another'), DatabaseUnavailable()], 'neither stored nor given up')), true)
  t.equal(isDatabaseAway(new Error('outer', { cause: new AggregateError([DatabaseUnavailable()]) })), true)
  t.equal(isDatabaseAway(new AggregateError([new Error('another')])), false)
})
