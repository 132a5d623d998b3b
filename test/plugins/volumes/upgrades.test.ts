// What an upgrade makes of volumes of earlier versions; that no row is lost is seen in ../../core/db/upgrades.test.ts, with those of all plugins.
import t from 'tap'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { openDatabase } from '../../../core/db/open.ts'
import { allSchemas, loadDump, readKept } from '../../core/db/schemas.ts'

t.test('sizes in GB become sizes in MiB, and the oldest volume of a name has it', async (t) => {
  const schema = (await allSchemas()).find(({ id }) => id === 'volumes')
  if (schema === undefined) throw new Error('there are no volumes')
  for (const count of [1, 2, 3]) {
    const database = openDatabase('sqlite::memory:')
    t.teardown(() => database.destroy())
    await loadDump(database, await readKept(schema, count) ?? '')
    await migratePlugin(database, 'volumes', schema.folder)
    t.same((await database('volumes_volumes').select('name', 'size_mib', 'name_key').orderBy('id')).map((row) => ({ ...row })), [
      { name: 'Data', size_mib: 1024, name_key: 'data' }, { name: 'data', size_mib: 2_048_000, name_key: null }, { name: 'other', size_mib: 3072, name_key: null }
    ])
  }
})
