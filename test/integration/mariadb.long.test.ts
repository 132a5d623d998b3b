// The whole server on MariaDB instead of SQLite: what its users do, its restarts, and a database that drops every connection.
import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { openDatabase } from '../../core/db/open.ts'
import { skipWithout } from '../../setup/structure/deleted.ts'
import { look, shell, startCounter } from '../helpers/counter.ts'
import { eventually } from '../helpers/eventually.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { waitFor } from '../helpers/machine.ts'
import { createMariadbDatabase } from '../helpers/mariadb.ts'
import { startTestServer } from '../helpers/server.ts'
import { skipFile } from '../helpers/skip-file.ts'

t.setTimeout(1_400_000)
const MAIN = fileURLToPath(new URL('../../core/main.js', import.meta.url))
await skipFile(skipWithout('snapshots', 'volumes'))
const url = await createMariadbDatabase()
const server = await startTestServer(t, { database: { url } })
const image = await push(server, await busyboxImage(), 'mariadb/busybox:latest')
let id = ''

t.test('a machine, its standby, a volume and a snapshot are as on SQLite', async (t) => {
  id = await startCounter(server, image, 'on-mariadb', 'echo first > /root/file')
  const { nonce } = await look(server, id)
  t.match(await server.sdk.instances.standby(id), { state: 'Standby' })
  t.match(await server.sdk.instances.restore(id), { state: 'Running' })
  t.equal((await look(server, id)).nonce, nonce)
  const volume = await server.sdk.volumes.create({ name: 'kept', size_gb: 1 })
  await server.sdk.instances.volumes.attach(volume.id, { id, mount_path: '/data' })
  t.equal(await shell(server, id, 'echo word > /data/file; cat /data/file'), 'word\n')
  await server.sdk.instances.volumes.detach(volume.id, { id })
  t.match(await server.sdk.instances.snapshots.create(id, { kind: 'Standby', name: 'moment' }), { name: 'moment' })
  const database = openDatabase(url)
  t.teardown(() => database.destroy())
  const [tables] = await database.raw('SHOW TABLES')
  t.ok(tables.length > 5, 'the rows are there, not in a file')
})

t.test('the next server finds everything, after an orderly end and after a crash', async (t) => {
  const { nonce } = await look(server, id)
  for (const end of [async () => await server.kill9(), async () => {
    await server.sdk.instances.standby(id)
    await server.stop()
  }]) {
    await end()
    await server.restart()
    t.same((await server.sdk.instances.list()).map(({ name }) => name), ['on-mariadb'])
    t.same((await server.sdk.volumes.list()).map(({ name }) => name), ['kept'])
    t.same((await server.sdk.snapshots.list()).map(({ name }) => name), ['moment'])
  }
  await server.sdk.instances.restore(id)
  await waitFor(server, id, 'Running')
  t.equal((await look(server, id)).nonce, nonce)
})

t.test('a database that drops every connection is used again, and no row is lost', async (t) => {
  const database = openDatabase(url)
  t.teardown(() => database.destroy())
  for (let round = 0; round < 3; round++) {
    const [rows] = await database.raw('SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()')
    t.ok(rows.length > 0, 'the server has connections')
    // One that has ended by itself meanwhile is no failure.
    for (const { id } of rows) await database.raw(`KILL ${Number(id)}`).catch(() => undefined)
    t.ok(await eventually('the server answers', async () => await server.sdk.volumes.create({ name: `after-${round}`, size_gb: 1 }).catch(() => undefined)))
    t.match(await server.sdk.instances.get(id), { name: 'on-mariadb', state: 'Running' })
  }
  t.same((await server.sdk.volumes.list()).map(({ name }) => name).sort(), ['after-0', 'after-1', 'after-2', 'kept'])
})

t.test('a backup of the running server is put into an empty folder and an empty database, and a machine in standby goes on there', async (t) => {
  const { nonce } = await look(server, id)
  await server.sdk.instances.standby(id)
  const [backup, other] = [join(server.folder, 'backup'), await createMariadbDatabase()]
  const berth = async (database: string, ...args: string[]): Promise<string> => {
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args], { env: { PATH: process.env['PATH'], BERTH_DATA_DIR: server.dataDir, BERTH_DATABASE_URL: database } })
    return stdout
  }
  t.match(await berth(url, 'backup', backup), /whole backup/)
  await server.stop()
  await rm(server.dataDir, { recursive: true })
  await t.rejects(berth(url, 'restore', backup), /not empty/)
  t.match(await berth(other, 'restore', backup), /files and the database/)
  await server.restart({ database: { url: other } })
  t.same((await server.sdk.volumes.list()).map(({ name }) => name).sort(), ['after-0', 'after-1', 'after-2', 'kept'])
  t.same((await server.sdk.snapshots.list()).map(({ name }) => name), ['moment'])
  await server.sdk.instances.restore(id)
  await waitFor(server, id, 'Running')
  t.equal((await look(server, id)).nonce, nonce)
  await server.sdk.instances.delete(id)
})
