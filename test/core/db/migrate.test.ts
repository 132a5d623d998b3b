import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { migratePlugin, revertPlugin } from '../../../core/db/migrate.ts'
import { dialectOf, openDatabase } from '../../../core/db/open.ts'
import { testFolder } from '../../helpers/folder.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'
import { runModule } from '../../helpers/processes.ts'

const THINGS = `
export async function up (db) { await db.schema.createTable('some_plugin_things', (table) => { table.string('id', 32).primary() }) }
export async function down (db) { await db.schema.dropTable('some_plugin_things') }`
const COLOR = `
export async function up (db) { await db.schema.alterTable('some_plugin_things', (table) => { table.string('color', 32) }) }
export async function down (db) { await db.schema.alterTable('some_plugin_things', (table) => { table.dropColumn('color') }) }`
const BROKEN = `
export async function up (db) { await db('no_such_table').insert({ a: 1 }) }
export async function down () {}`

async function folderOf (place: string, files: Readonly<Record<string, string>>): Promise<URL> {
  await mkdir(place, { recursive: true })
  await writeFile(join(place, 'package.json'), '{"type":"module"}')
  for (const [name, text] of Object.entries(files)) await writeFile(join(place, name), text)
  return pathToFileURL(place)
}

eachDatabase(t, 'migrations run once, in order, and only compiled modules count', async (t, database) => {
  const place = testFolder(t)
  const folder = await folderOf(join(place, 'm'), { '0001-create-things.js': THINGS, '0001-create-things.d.ts': 'x', '0001-create-things.js.map': '{}' })
  await migratePlugin(database, 'some-plugin', folder)
  await database('some_plugin_things').insert({ id: 'a' })
  await folderOf(join(place, 'm'), { '0002-add-color.js': COLOR })
  await migratePlugin(database, 'some-plugin', folder)
  await migratePlugin(database, 'some-plugin', folder)
  t.same((await database('some_plugin_things').select()).map((row) => ({ ...row })), [{ id: 'a', color: null }], 'data stays')
  t.same(await database('some_plugin_migrations').orderBy('name').pluck('name'), ['0001-create-things', '0002-add-color'])
  await revertPlugin(database, 'some-plugin', folder)
  t.equal(await database.schema.hasTable('some_plugin_things'), false)
})

eachDatabase(t, 'a migration that failed or was killed midway is done again', async (t, database) => {
  const place = testFolder(t)
  const folder = await folderOf(join(place, 'm'), { '0001-create-things.js': THINGS, '0002-broken.js': BROKEN })
  await t.rejects(migratePlugin(database, 'some-plugin', folder))
  const fixed = await folderOf(join(place, 'n'), { '0001-create-things.js': THINGS, '0002-broken.js': COLOR })
  await migratePlugin(database, 'some-plugin', fixed)
  t.equal(await database.schema.hasColumn('some_plugin_things', 'color'), true)
  if (dialectOf(database) === 'mysql') {
    // what a kill leaves behind, before and after the DDL statement
    await database('some_plugin_migrations').where({ name: '0002-broken' }).update({ state: 'running' })
    await migratePlugin(database, 'some-plugin', fixed)
    await database('some_plugin_migrations').where({ name: '0002-broken' }).update({ state: 'running' })
    await database.schema.alterTable('some_plugin_things', (table) => { table.dropColumn('color') })
    await migratePlugin(database, 'some-plugin', fixed)
    t.equal(await database.schema.hasColumn('some_plugin_things', 'color'), true)
  }
  t.same(await database('some_plugin_migrations').orderBy('name').pluck('state'), ['done', 'done'])
})

eachDatabase(t, 'servers that start at the same time migrate one after the other', async (t, database, url) => {
  const folder = await folderOf(testFolder(t), { '0001-create-things.js': THINGS, '0002-add-color.js': COLOR })
  const program = new URL('programs/migrate.js', import.meta.url)
  await Promise.all([1, 2, 3].map(() => runModule(program, [url, folder.href])))
  t.equal(await database.schema.hasColumn('some_plugin_things', 'color'), true)
})

eachDatabase(t, 'a database of a newer version is refused', async (t, database) => {
  const place = testFolder(t)
  await migratePlugin(database, 'some-plugin', await folderOf(join(place, 'new'), { '0001-create-things.js': THINGS, '0002-add-color.js': COLOR }))
  const older = await folderOf(join(place, 'old'), { '0001-create-things.js': THINGS })
  await t.rejects(migratePlugin(database, 'some-plugin', older), /0002-add-color.*newer version/)
})

eachDatabase(t, 'the tables of core can be made and taken back', async (t, database) => {
  const folder = new URL('../../../core/db/migrations/', import.meta.url)
  await migratePlugin(database, 'core', folder)
  t.equal(await database.schema.hasTable('core_api_keys'), true)
  await revertPlugin(database, 'core', folder)
  t.equal(await database.schema.hasTable('core_api_keys'), false)
  await migratePlugin(database, 'core', folder)
})

t.test('a module without up and down is named', async (t) => {
  const database = openDatabase(`sqlite:${join(testFolder(t), 'x.db')}`)
  t.teardown(() => database.destroy())
  const folder = await folderOf(join(t.testdirName, 'm'), { '0001-nothing.js': 'export const up = 1' })
  await t.rejects(migratePlugin(database, 'some-plugin', folder), /0001-nothing does not export/)
})
