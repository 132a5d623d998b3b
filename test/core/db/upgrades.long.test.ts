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

t.test('a migration that ends between any two of its statements is finished by the next server', async (t) => {
  for (const schema of await allSchemas()) {
    const count = schema.names.findIndex((name) => name.includes('-add-') || name.includes('-name-'))
    if (count <= 0) continue
    for (let statement = 1, isOver = false; !isOver; statement++) {
      const { database, before } = await earlier(t, schema, count)
      let seen = 0
      const interrupt = (): void => { if (++seen === statement) throw new Error('interrupted') }
      database.on('query', interrupt)
      isOver = await migratePlugin(database, schema.id, schema.folder).then(() => true, (error: unknown) => {
        if (!/interrupted/.test(String(error))) throw error
        return false
      })
      database.removeListener('query', interrupt)
      await migratePlugin(database, schema.id, schema.folder)
      t.ok(await isIntact(database, schema, before), `${schema.id}, statement ${statement}`)
      await database.destroy()
    }
  }
})
