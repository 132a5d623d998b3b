// The same on MariaDB, where each statement of a migration is there by itself: killed between any two of them, the next server finishes it.
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Knex } from 'knex'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { openDatabase } from '../../../core/db/open.ts'
import { createMariadbDatabase } from '../../helpers/mariadb.ts'
import { temporaryFolder } from '../bare-app.ts'
import { allSchemas, comparable, makeVersion, rowsOf, type Rows, type Schema } from './schemas.ts'

t.setTimeout(900_000)

async function earlier (t: Test, schema: Schema, count: number): Promise<{ database: Knex, before: Rows }> {
  const database = openDatabase(await createMariadbDatabase())
  t.teardown(() => database.destroy())
  await makeVersion(database, schema, count, join(await temporaryFolder(t), 'migrations'))
  return { database, before: await rowsOf(database, schema) }
}

async function isIntact (database: Knex, schema: Schema, before: Rows): Promise<boolean> {
  const after = await rowsOf(database, schema)
  const old = Object.fromEntries(Object.entries(after).filter(([table]) => table in before))
  return JSON.stringify(comparable(old, before)) === JSON.stringify(comparable(before, after))
}

for (const schema of await allSchemas()) {
  for (let count = 1; count < schema.names.length; count++) {
    t.test(`on MariaDB, the tables of ${schema.id} as of ${schema.names[count - 1] ?? ''} are brought up to date with their rows`, async (t) => {
      const { database, before } = await earlier(t, schema, count)
      await migratePlugin(database, schema.id, schema.folder)
      t.ok(await isIntact(database, schema, before))
    })
  }
}

/** Which indexes there are, of which columns. */
async function indexesOf (database: Knex): Promise<unknown> {
  const [rows] = await database.raw('SELECT table_name AS t, index_name AS i, seq_in_index AS s, column_name AS c FROM information_schema.statistics WHERE table_schema = DATABASE() ORDER BY 1, 2, 3')
  return rows.map((row: object) => ({ ...row }))
}

for (const schema of await allSchemas()) {
  for (const [count, name] of schema.names.entries()) {
    if (count === 0 || name.includes('-index-')) continue
    t.test(`on MariaDB, ${name} of ${schema.id} that ends between any two of its statements is finished by the next server`, async (t) => {
      let whole: unknown
      for (let statement = 0, isOver = false; !isOver; statement++) {
        const { database, before } = await earlier(t, schema, count)
        let seen = 0
        const interrupt = (): void => { if (++seen === statement) throw new Error('interrupted') }
        database.on('query', interrupt)
        isOver = await migratePlugin(database, schema.id, schema.folder).then(() => statement > 0, (error: unknown) => {
          if (!/interrupted/.test(String(error))) throw error
          return false
        })
        database.removeListener('query', interrupt)
        await migratePlugin(database, schema.id, schema.folder)
        t.ok(await isIntact(database, schema, before), `rows, statement ${statement}`)
        if (statement === 0) whole = await indexesOf(database)
        else t.same(await indexesOf(database), whole, `indexes, statement ${statement}`)
        await database.destroy()
      }
    })
  }
}
