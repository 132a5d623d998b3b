// An upgrade whose migration changed the database is taken back: by the plugin volumes' own migrations, with the newest held back for what is the older version.
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { Type } from 'typebox'
import { buildApp, type App } from '../../../core/app.ts'
import { runCommandLine } from '../../../core/cli/run.ts'
import { CopyFailed, keepCopy } from '../../../core/data/copies/keep.ts'
import { listCopies } from '../../../core/data/copies/kept.ts'
import { markUnfinished } from '../../../core/data/unfinished.ts'
import { dialectOf, openDatabase } from '../../../core/db/open.ts'
import { createDiskSpace } from '../../../core/fs/disk-space.ts'
import type { Plugin } from '../../../core/plugins/manifest.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { createMariadbDatabase, eachDatabase } from '../../helpers/mariadb.ts'
import { PROGRAM } from '../../helpers/mariadb-server.ts'
import { ADMIN_KEY, authorization, noBuiltIns, temporaryFolder } from '../../core/bare-app.ts'

t.setTimeout(300_000)
const MIGRATIONS = new URL('../../../plugins/volumes/migrations/', import.meta.url)

/** A version of the plugin that knows `count` migrations and lists the volumes by the columns of that schema. */
async function versionWith (folder: string, count: number, column: string): Promise<Plugin> {
  const place = join(folder, `migrations-${count}`)
  await mkdir(place, { recursive: true })
  await writeFile(join(place, 'package.json'), '{"type":"module"}')
  const names = (await readdir(MIGRATIONS)).filter((name) => name.endsWith('.js')).sort().slice(0, count)
  for (const name of names) await writeFile(join(place, name), `export * from ${JSON.stringify(new URL(name, MIGRATIONS).href)}\n`)
  return {
    manifest: { id: 'volumes', provides: [], requires: ['database'], scopes: ['volume:read'], config: Type.Object({}, { additionalProperties: false }), migrations: pathToFileURL(place) },
    create: ({ database }) => ({
      async routes (http) {
        http.get('/listed', { config: { scope: 'volume:read' } }, async () => await database('volumes_volumes').select('name', column).orderBy('name'))
      }
    })
  }
}

interface Place { readonly dataDir: string, readonly url: string, readonly older: Plugin, readonly newer: Plugin }

async function placeFor (t: Test, url: string): Promise<Place> {
  const folder = await temporaryFolder(t)
  return { dataDir: join(folder, 'data'), url, older: await versionWith(folder, 3, 'size_gb'), newer: await versionWith(folder, 4, 'size_mib') }
}

async function build ({ dataDir, url }: Place, plugin: Plugin, keepCopies = 3): Promise<App> {
  return await buildApp({ server: { dataDir, apiKey: ADMIN_KEY }, database: { url, keepCopies }, log: { level: 'silent' } }, { environment: {}, builtIns: noBuiltIns, plugins: [plugin] })
}

async function withServer<T> (place: Place, plugin: Plugin, work: (app: App) => Promise<T>): Promise<T> {
  const app = await build(place, plugin)
  try {
    await app.start({ listen: false })
    return await work(app)
  } finally {
    await app.stop()
  }
}

async function listed (app: App): Promise<unknown> {
  return (await app.http.inject({ url: '/listed', headers: authorization })).json()
}

async function berth ({ dataDir, url }: Place, ...args: string[]): Promise<{ code: number, out: string }> {
  const out: string[] = []
  const say = (line: string): void => { out.push(line) }
  return { code: await runCommandLine(args, { environment: { BERTH_DATA_DIR: dataDir, BERTH_DATABASE_URL: url }, print: say, complain: say }), out: out.join('\n') }
}

async function insert (place: Place, row: object): Promise<void> {
  const database = openDatabase(place.url)
  try {
    await database('volumes_volumes').insert({ host_id: 'h', status: 'available', tags: '{}', created_at: 1, generation: 0, turns: 0, ...row })
  } finally {
    await database.destroy()
  }
}

eachDatabase(t, 'an upgrade is taken back after its migration, and the older version serves what was there', async (t, _database, url) => {
  const place = await placeFor(t, url)
  await withServer(place, place.older, async (app) => {
    t.same(await listed(app), [])
    await insert(place, { id: 'a', name: 'kept', size_gb: 2 })
    t.same(await listed(app), [{ name: 'kept', size_gb: 2 }])
  })
  t.same(await listCopies(place.dataDir), [], 'a new database and an unchanged one are not copied')
  await withServer(place, place.newer, async (app) => {
    t.same(await listed(app), [{ name: 'kept', size_mib: 2048 }])
    await insert(place, { id: 'b', name: 'later', size_mib: 1 })
    t.match(await berth(place, 'restore-database', '1'), { code: 1, out: /in use by another server/ })
  })
  await t.rejects(withServer(place, place.older, async () => undefined), /newer version; "berth restore-database"/)
  t.match(await listCopies(place.dataDir), [{ number: 1, reason: 'before volumes/0004-name-key-and-mib', open: false }])
  t.match(await berth(place, 'restore-database'), { code: 0, out: /^1 .*before volumes\/0004/ })
  t.match(await berth(place, 'restore-database', '7'), { code: 1, out: /no copy 7/ })
  t.match(await berth(place, 'restore-database', 'x'), { code: 2 })

  t.match(await berth(place, 'restore-database', '1'), { code: 0, out: /copy 1/ })
  await withServer(place, place.older, async (app) => { t.same(await listed(app), [{ name: 'kept', size_gb: 2 }]) })
  t.match(await listCopies(place.dataDir), [{ number: 1 }, { number: 2, reason: /before copy 1 was brought back/ }])
  t.match(await berth(place, 'restore-database', '2'), { code: 0 })
  await withServer(place, place.newer, async (app) => { t.same(await listed(app), [{ name: 'kept', size_mib: 2048 }, { name: 'later', size_mib: 1 }]) })
})

const skip = existsSync(PROGRAM) ? false : `${PROGRAM} is missing: install the package mariadb-server`

t.test('a copy is not brought back while the server of another host uses the database', { skip }, async (t) => {
  const url = await createMariadbDatabase()
  const [place, other] = [await placeFor(t, url), await placeFor(t, url)]
  await withServer(place, place.older, async () => { await insert(place, { id: 'a', name: 'kept', size_gb: 2 }) })
  await withServer(place, place.newer, async () => undefined)
  await withServer(other, other.newer, async (app) => {
    const hostId = (await readFile(join(other.dataDir, 'host-id'), 'utf8')).trim()
    await insert(other, { id: 'b', name: 'other', size_mib: 1, host_id: hostId })
    t.match(await berth(place, 'restore-database', '1'), { code: 1, out: new RegExp(`the server of host ${hostId} `) })
    t.same(await listed(app), [{ name: 'kept', size_mib: 2048 }, { name: 'other', size_mib: 1 }])
  })
  t.match(await berth(place, 'restore-database', '1'), { code: 0 })
})

t.test('of two hosts that upgrade a database at once one keeps a copy, of what was there before', { skip }, async (t) => {
  const url = await createMariadbDatabase()
  const [place, other] = [await placeFor(t, url), await placeFor(t, url)]
  await withServer(place, place.older, async () => { await insert(place, { id: 'a', name: 'kept', size_gb: 2 }) })
  await Promise.all([place, other].map(async (each) => {
    await withServer(each, each.newer, async (app) => { t.same(await listed(app), [{ name: 'kept', size_mib: 2048 }]) })
  }))
  t.match([...await listCopies(place.dataDir), ...await listCopies(other.dataDir)], [{ number: 1, reason: 'before volumes/0004-name-key-and-mib', open: false }])
  t.equal((await listCopies(place.dataDir)).length + (await listCopies(other.dataDir)).length, 1)
})

eachDatabase(t, 'a copy that was half put back is not served, and the same command makes it whole', async (t, database, url) => {
  const place = await placeFor(t, url)
  await withServer(place, place.older, async () => { await insert(place, { id: 'a', name: 'kept', size_gb: 2 }) })
  await withServer(place, place.newer, async () => undefined)
  // What a kill leaves that comes when the old tables have gone.
  await markUnfinished(place.dataDir, 'restore-database', '1')
  if (dialectOf(database) === 'mysql') await database.schema.dropTable('volumes_volumes')
  else await writeFile(url.slice('sqlite:'.length), '')
  await t.rejects(withServer(place, place.older, async () => undefined), /not whole/)
  t.match(await berth(place, 'restore-database', '1'), { code: 0 })
  await withServer(place, place.older, async (app) => { t.same(await listed(app), [{ name: 'kept', size_gb: 2 }]) })
})

t.test('an upgrade that fails midway is tried again without a copy of what it left', async (t) => {
  const folder = await temporaryFolder(t)
  const place = await placeFor(t, `sqlite:${join(folder, 'x.db')}`)
  await withServer(place, place.older, async () => { await insert(place, { id: 'a', name: 'kept', size_gb: 2 }) })
  const broken = join(folder, 'broken')
  await mkdir(broken)
  await writeFile(join(broken, 'package.json'), '{"type":"module"}')
  await writeFile(join(broken, '0001-broken.js'), 'export async function up () { throw new Error("cannot be done") }\nexport async function down () {}')
  const other: Plugin = { manifest: { id: 'zother', provides: [], requires: [], config: Type.Object({}, { additionalProperties: false }), migrations: pathToFileURL(broken) } }
  for (let round = 0; round < 5; round++) {
    const app = await buildApp({ server: { dataDir: place.dataDir }, database: { url: place.url, keepCopies: 2 }, log: { level: 'silent' } }, { environment: {}, builtIns: noBuiltIns, plugins: [place.newer, other] })
    await t.rejects(app.start({ listen: false }), /cannot be done/)
    await app.stop()
  }
  t.match(await listCopies(place.dataDir), [{ number: 1, open: true }])
  t.match(await berth(place, 'restore-database', '1'), { code: 0 })
  await withServer(place, place.older, async (app) => { t.same(await listed(app), [{ name: 'kept', size_gb: 2 }]) })
})

t.test('copies are bounded in number and in space, and a damaged one is refused', async (t) => {
  const folder = await temporaryFolder(t)
  const place = await placeFor(t, `sqlite:${join(folder, 'x.db')}`)
  await withServer(place, place.older, async () => undefined)
  const database = openDatabase(place.url)
  t.teardown(() => database.destroy())
  const disk = createDiskSpace(place.dataDir, { bytes: 0, inodes: 0 })
  const keeping = { dataDir: place.dataDir, url: place.url, commands: createHostCommands(), disk, most: 3 }
  for (let count = 0; count < 5; count++) await keepCopy(database, keeping, { reason: 'test', open: false, ...count > 0 ? { spared: 1 } : {} })
  t.same((await listCopies(place.dataDir)).map(({ number }) => number), [1, 3, 4, 5].slice(-4))
  const demanding = { ...disk, check: async () => await disk.check({ bytes: 2 ** 60 }) }
  const error = await keepCopy(database, { ...keeping, disk: demanding }, { reason: 'test', open: false }).catch((reason: unknown) => reason)
  t.ok(error instanceof CopyFailed)
  t.match(error, { message: /too little space.*needed/ })
  // What a kill leaves: a file without its note.
  const copies = join(place.dataDir, 'database-copies')
  await writeFile(join(copies, '9.db'), 'half')
  t.match(await berth(place, 'restore-database', '9'), { code: 1, out: /no copy 9/ })
  await keepCopy(database, keeping, { reason: 'test', open: false })
  t.notOk((await readdir(copies)).includes('9.db'))
  await writeFile(join(copies, '6.db'), 'damaged')
  t.match(await berth(place, 'restore-database', '6'), { code: 1, out: /damaged/ })
  t.equal((await readFile(join(copies, '5.db'))).subarray(0, 6).toString(), 'SQLite')
  await rm(copies, { recursive: true })
})

t.test('a key is made in a database of this version only', async (t) => {
  const folder = await temporaryFolder(t)
  const place = await placeFor(t, `sqlite:${join(folder, 'x.db')}`)
  await withServer(place, place.older, async () => undefined)
  const database = openDatabase(place.url)
  await database('core_migrations').where({ name: '0002-create-idempotency' }).delete()
  await database.destroy()
  t.match(await berth(place, 'token', 'create', '--name', 'x'), { code: 1, out: /older version: start the server/ })
})
