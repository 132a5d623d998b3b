// That the server of a host runs, as other hosts of its database see it.
import { existsSync } from 'node:fs'
import pino from 'pino'
import t from 'tap'
import { RunningHost, withoutOtherHosts } from '../../../core/data/running-hosts.ts'
import { openDatabase } from '../../../core/db/open.ts'
import { eventually } from '../../helpers/eventually.ts'
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

t.test('nobody else uses an SQLite database', async (t) => {
  t.equal(await withoutOtherHosts(`sqlite:${t.testdir()}/none.db`, undefined, async () => 'done'), 'done')
})
