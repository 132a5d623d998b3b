// Each earlier schema, with rows, becomes the newest, and keeps its rows. The databases of schemas/ are as those versions left them, whatever became of their migrations.
import t from 'tap'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { openDatabase } from '../../../core/db/open.ts'
import { allSchemas, comparable, loadDump, readKept, rowsOf } from './schemas.ts'

for (const schema of await allSchemas()) {
  for (const [index, name] of schema.names.entries()) {
    t.test(`the tables of ${schema.id} as of ${name} are brought up to date with their rows`, async (t) => {
      const text = await readKept(schema, index + 1)
      if (text === undefined) throw new Error('its schema is not kept: run node dist/test/core/db/programs/keep-schemas.js')
      const database = openDatabase('sqlite::memory:')
      t.teardown(() => database.destroy())
      await loadDump(database, text)
      const before = await rowsOf(database, schema)
      t.ok(Object.values(before).every((rows) => rows.length === 3))
      await migratePlugin(database, schema.id, schema.folder)
      const after = await rowsOf(database, schema)
      const old = Object.fromEntries(Object.entries(after).filter(([table]) => table in before))
      t.same(comparable(old, before), comparable(before, after))
    })
  }
}

t.test('a key of before that may write images may push them, and no other key may', async (t) => {
  const schema = (await allSchemas()).find(({ id }) => id === 'core')
  if (schema === undefined) throw new Error('core has no tables')
  const database = openDatabase('sqlite::memory:')
  t.teardown(() => database.destroy())
  await loadDump(database, await readKept(schema, 2) ?? '')
  await database('core_api_keys').where({ id: 'id 2' }).update({ scopes: '["image:read","image:write"]' })
  await migratePlugin(database, 'core', schema.folder)
  t.same(await database('core_api_keys').orderBy('id').pluck('scopes'), ['["instance:read"]', '["*"]', '["image:read","image:write","push:read","push:write"]'])
})

t.test('snapshots of before are numbered in the order of their times', async (t) => {
  const schema = (await allSchemas()).find(({ id }) => id === 'snapshots')
  if (schema === undefined) throw new Error('snapshots have no tables')
  const database = openDatabase('sqlite::memory:')
  t.teardown(() => database.destroy())
  await loadDump(database, await readKept(schema, 4) ?? '')
  await database('snapshots_snapshots').where({ id: 'id 0' }).update({ created_at: 1_800_000_000_000 })
  await migratePlugin(database, 'snapshots', schema.folder)
  t.same(await database('snapshots_snapshots').orderBy('id').select('id', 'number'), [{ id: 'id 0', number: 3 }, { id: 'id 1', number: 1 }, { id: 'id 2', number: 2 }])
})
