// A data folder in which a command that puts something back was ended midway: only that command goes on with it. And a backup during which the database changes.
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { checksumOfHost } from '../../../core/backup/host-rows.ts'
import { markUnfinished } from '../../../core/data/unfinished.ts'
import { openDatabase } from '../../../core/db/open.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { createMariadbDatabase } from '../../helpers/mariadb.ts'
import { PROGRAM } from '../../helpers/mariadb-server.ts'
import { withoutMounts } from '../../helpers/rights.ts'
import { bareApp, temporaryFolder } from '../bare-app.ts'
import { backedUp, berth, berthOn, keepOne } from './bare-backup.ts'

const commands = createHostCommands()

t.test('a backup does not take the place of a data folder whose database was half brought back', async (t) => {
  const { dataDir, backup } = await backedUp(t)
  await writeFile(join(dataDir, 'disks/later'), 'made since the backup')
  await keepOne(dataDir)
  await markUnfinished(dataDir, 'restore-database', '1')
  t.match(await berth(dataDir, 'restore', backup), { code: 1, said: /is not whole: .*berth restore-database 1/ })
  t.ok(await stat(join(dataDir, 'disks/later')))
  t.same(await readdir(join(dataDir, 'database-copies')), ['1.db', '1.json'])
  t.match(await berth(dataDir, 'restore-database', '1'), { code: 0 })
  t.match(await berth(dataDir, 'token', 'list'), { code: 0 })
})

t.test('a copy of the database does not make a half-restored data folder a whole one', async (t) => {
  const { dataDir } = await backedUp(t)
  await keepOne(dataDir)
  await markUnfinished(dataDir, 'restore', '/some/backup')
  t.match(await berth(dataDir, 'restore-database', '1'), { code: 1, said: /is not whole: .*berth restore \/some\/backup/ })
  t.match(await berth(dataDir, 'token', 'list'), { code: 1, said: /is not whole/ })
})

t.test('no backup is made of a data folder that is not whole', async (t) => {
  const { dataDir, folder } = await backedUp(t)
  await keepOne(dataDir)
  await markUnfinished(dataDir, 'restore-database', '1')
  t.match(await berth(dataDir, 'backup', join(folder, 'second')), { code: 1, said: /is not whole: .*berth restore-database 1/ })
  t.match(await berth(dataDir, 'restore-database', '1'), { code: 0 })
  t.match(await berth(dataDir, 'backup', join(folder, 'second')), { code: 0 })
})

t.test('a restore that is done again has the room that its first run took', { skip: withoutMounts }, async (t) => {
  const { backup, folder } = await backedUp(t, { bytes: 16 * 2 ** 20 })
  const small = join(folder, 'small')
  await mkdir(small)
  await commands.run('mount', ['-t', 'tmpfs', '-o', 'size=24M,mode=711', 'tmpfs', small])
  t.teardown(async () => { await commands.run('umount', [small]) })
  // What a kill leaves that comes when nearly all is there.
  await mkdir(join(small, 'disks'))
  await writeFile(join(small, 'disks/disk'), Buffer.alloc(15 * 2 ** 20, 'x'))
  await markUnfinished(small, 'restore', backup)
  t.match(await berth(small, 'restore', backup), { code: 0 })
  t.equal((await stat(join(small, 'disks/disk'))).size, 16 * 2 ** 20)
})

const skip = existsSync(PROGRAM) ? false : `${PROGRAM} is missing: install the package mariadb-server`

t.test('a backup of a host is made while another one changes its rows of the database, and not put in the place of them while its server runs', { skip }, async (t) => {
  const url = await createMariadbDatabase()
  const database = openDatabase(url)
  t.teardown(async () => { await database.destroy() })
  const { app, dataDir } = await bareApp(t, { database: { url } })
  await app.start({ listen: false })
  await app.stop()
  const [own, other] = [(await readFile(join(dataDir, 'host-id'), 'utf8')).trim(), 'b'.repeat(24)]
  await database.schema.createTable('things_things', (table) => {
    table.string('id', 64).primary()
    table.string('host_id', 64).notNullable()
    table.integer('count').notNullable()
  })
  await database('things_things').insert([{ id: 'a', host_id: own, count: 0 }, { id: 'b', host_id: other, count: 0 }])
  const before = await checksumOfHost(database, own)
  await database('core_api_keys').update({ last_used_at: 1 })
  await database('things_things').where({ id: 'b' }).increment('count', 1)
  t.equal(await checksumOfHost(database, own), before)
  await database('things_things').where({ id: 'a' }).increment('count', 1)
  t.not(await checksumOfHost(database, own), before)

  const over = new AbortController()
  const busy = (async () => {
    while (!over.signal.aborted) {
      await database('things_things').where({ id: 'b' }).increment('count', 1)
      await delay(20)
    }
  })()
  const backup = join(await temporaryFolder(t), 'backup')
  try {
    t.match(await berthOn({ BERTH_DATA_DIR: dataDir, BERTH_DATABASE_URL: url }, 'backup', backup), { code: 0 })
  } finally {
    over.abort()
    await busy
  }
  t.match(await readFile(join(backup, 'database.sql'), 'utf8'), 'things_things')

  // What a kill of a restore leaves, and somebody's server that was started on it.
  const target = join(await temporaryFolder(t), 'target')
  await mkdir(target)
  await markUnfinished(target, 'restore', backup)
  const { app: another, dataDir: place } = await bareApp(t, { database: { url } })
  await another.start({ listen: false })
  const id = (await readFile(join(place, 'host-id'), 'utf8')).trim()
  await database('things_things').insert({ id: 'c', host_id: id, count: 0 })
  const environment = { BERTH_DATA_DIR: target, BERTH_DATABASE_URL: url }
  t.match(await berthOn(environment, 'restore', backup), { code: 1, said: new RegExp(`the server of host ${id} `) })
  t.equal((await database('things_things').where({ host_id: id })).length, 1)
  await another.stop()
  t.match(await berthOn(environment, 'restore', backup), { code: 0 })
})
