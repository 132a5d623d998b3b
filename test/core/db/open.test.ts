import { join } from 'node:path'
import t from 'tap'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { dialectOf, openDatabase } from '../../../core/db/open.ts'
import { inTransaction, isDuplicate } from '../../../core/db/transaction.ts'
import { testFolder } from '../../helpers/folder.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'
import { runModule } from '../../helpers/processes.ts'

eachDatabase(t, 'a transaction is there whole or not at all', async (t, database) => {
  await database.schema.createTable('t', (table) => { table.string('id', 32).primary() })
  await t.rejects(inTransaction(database, async (trx) => {
    await trx('t').insert({ id: 'a' })
    throw new Error('no')
  }), { message: 'no' })
  t.equal(await inTransaction(database, async (trx) => { await trx('t').insert({ id: 'b' }); return 'value' }), 'value')
  t.same(await database('t').pluck('id'), ['b'])
})

eachDatabase(t, 'a value that is taken is recognised, and strings differ by case', async (t, database, url) => {
  await migratePlugin(database, 'core', new URL('../../../core/db/migrations/', import.meta.url))
  await database.schema.createTable('t', (table) => { table.string('id', 32).primary(); table.string('name', 32).unique() })
  await database('t').insert({ id: 'a', name: 'x' })
  await database('t').insert({ id: 'A', name: 'X' })
  for (const row of [{ id: 'a', name: 'y' }, { id: 'b', name: 'x' }]) {
    const error = await database('t').insert(row).catch((reason: unknown) => reason)
    t.equal(isDuplicate(error), true)
    t.notMatch(error, { message: /'y'/ }, 'values stay out of messages')
  }
  t.equal(isDuplicate(new Error('other')), false)
  t.equal(dialectOf(database), url.startsWith('sqlite:') ? 'sqlite' : 'mysql')
})

eachDatabase(t, 'writers of two processes that meet both succeed', async (t, database, url) => {
  await database.schema.createTable('counters', (table) => { table.string('id', 32).primary(); table.integer('value').notNullable() })
  await database('counters').insert([{ id: 'a', value: 0 }, { id: 'b', value: 0 }])
  const program = new URL('programs/count.js', import.meta.url)
  await Promise.all([['a', 'b'], ['b', 'a'], ['a', 'b']].map((order) => runModule(program, [url, ...order])))
  t.same(await database('counters').orderBy('id').pluck('value'), [30, 30])
})

eachDatabase(t, 'times in ms come back as numbers', async (t, database) => {
  await database.schema.createTable('t', (table) => { table.bigInteger('at') })
  await database('t').insert({ at: 1_790_000_000_123 })
  t.same(await database('t').pluck('at'), [1_790_000_000_123])
})

t.test('SQLite waits for other writers and writes through to the disk', async (t) => {
  const database = openDatabase(`sqlite:${join(testFolder(t), 'x.db')}`)
  t.teardown(() => database.destroy())
  t.match(await database.raw('PRAGMA journal_mode'), [{ journal_mode: 'wal' }])
  t.match(await database.raw('PRAGMA synchronous'), [{ synchronous: 2 }])
  t.match(await database.raw('PRAGMA foreign_keys'), [{ foreign_keys: 1 }])
})

t.test('a URL that names no database is refused without its password', async (t) => {
  for (const url of ['postgres://user:hunter2@host/x', 'sqlite:', 'mysql://user:hunter2@host']) {
    t.throws(() => openDatabase(url), { message: /^the database URL(?!.*hunter2)/ })
  }
})
