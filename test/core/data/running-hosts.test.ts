// That the server of a host runs, as other hosts of its database see it.
import { existsSync } from 'node:fs'
import pino from 'pino'
import t from 'tap'
import { beginUpgrade, type Upgrade } from '../../../core/data/copies/before-upgrade.ts'
import { CORE_MIGRATIONS } from '../../../core/data/database.ts'
import { RunningHost, withoutOtherHosts } from '../../../core/data/running-hosts.ts'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { openDatabase } from '../../../core/db/open.ts'
import { createDiskSpace } from '../../../core/fs/disk-space.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { eventually } from '../../helpers/eventually.ts'
import { testFolder } from '../../helpers/folder.ts'
import { createMariadbDatabase } from '../../helpers/mariadb.ts'
import { PROGRAM } from '../../helpers/mariadb-server.ts'

const skip = existsSync(PROGRAM) ? false : `${PROGRAM} is missing: install the package mariadb-server`

t.test('a server is seen until it ends, also after its connection was lost', { skip }, async (t) => {
  const url = await createMariadbDatabase()
  const database = openDatabase(url)
  t.teardown(async () => { await database.destroy() })
  await database.schema.createTable('things_things', (table) => { table.string('host_id', 64).notNullable() })
  await database('things_things').insert([{ host_id: 'one' }, { host_id: 'other' }])
  const isRefused = async (own?: string): Promise<boolean> => await withoutOtherHosts(url, own, async () => false).catch((error: unknown) => {
    t.match(error, { name: 'DatabaseInUse', message: /^the server of host one / })
    return true
  })
  const idsOf = async (): Promise<number[]> => {
    const [connections] = await database.raw('SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()')
    return connections.map(({ id }: { readonly id: number }) => id)
  }
  const killAll = async (): Promise<void> => {
    const killed = await idsOf()
    // One that has just closed cannot be killed.
    for (const id of killed) await database.raw('KILL ?', [id]).catch(() => {})
    await eventually('the connections are gone', async () => (await idsOf()).every((id) => !killed.includes(id)))
  }
  const log = pino({ level: 'silent' })
  const blind = new RunningHost(url, 'one', log, { lookMs: 3_600_000 })
  await blind.shown()
  t.equal(await isRefused(), true)
  await killAll()
  t.equal(await isRefused(), false, 'its lock ends with its connection')
  await blind.end()

  const running = new RunningHost(url, 'one', log, { lookMs: 300 })
  await running.shown()
  t.equal(await isRefused(), true)
  t.equal(await isRefused('other'), true)
  t.equal(await isRefused('one'), false, 'its own command is not kept off by it, but by the lock of its data folder')
  await killAll()
  await eventually('it is seen again', async () => await isRefused())
  await running.end()
  t.equal(await isRefused(), false)
})

t.test('a server whose database another one upgrades waits for that, however long it takes, with copies and without', { skip }, async (t) => {
  const url = await createMariadbDatabase()
  const database = openDatabase(url)
  t.teardown(async () => { await database.destroy() })
  await migratePlugin(database, CORE_MIGRATIONS.id, CORE_MIGRATIONS.folder)
  await database('core_migrations').orderBy('name', 'desc').limit(1).delete()
  const dataDir = testFolder(t)
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => { lines.push(JSON.parse(line)) } })
  const begin = async (most: number): Promise<Upgrade | undefined> =>
    await beginUpgrade(database, [CORE_MIGRATIONS], { dataDir, url, commands: createHostCommands(), disk: createDiskSpace(dataDir, { bytes: 0, inodes: 0 }), most }, log, { waitSeconds: 1 })
  for (const most of [0, 1]) {
    lines.length = 0
    const first = await begin(most)
    let isBegun = false
    const second = begin(most).finally(() => { isBegun = true })
    await eventually('it has waited twice', async () => lines.length >= 2 || isBegun)
    t.equal(isBegun, false)
    t.match(lines, [{ level: 30, msg: /server of another host is upgrading the database/ }, { level: 30 }])
    await first?.end()
    const begun = await second
    t.equal(begun?.copy, undefined, 'that of the first one counts')
    await begun?.end()
  }
})

t.test('nobody else uses an SQLite database', async (t) => {
  t.equal(await withoutOtherHosts(`sqlite:${testFolder(t)}/none.db`, undefined, async () => 'done'), 'done')
})
