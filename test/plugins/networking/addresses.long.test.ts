// Addresses in the database: one owner each, never the gateway's, and used again only when nobody remembers the last owner.
import t from 'tap'
import type { Knex } from 'knex'
import { migratePlugin, revertPlugin } from '../../../core/db/migrate.ts'
import { parseCidr } from '../../../plugins/networking/cidr.ts'
import { AddressRepository } from '../../../plugins/networking/repository.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'
import { runModule } from '../../helpers/processes.ts'

const MIGRATIONS = new URL('../../../plugins/networking/migrations/', import.meta.url)

async function openRepository (database: Knex, cidr: string, hostId = 'host'): Promise<AddressRepository> {
  await migratePlugin(database, 'networking', MIGRATIONS)
  const repository = new AddressRepository(database, hostId, parseCidr(cidr))
  await repository.open()
  return repository
}

eachDatabase(t, 'an instance keeps the address that it got, and no two have the same', async (t, database) => {
  const repository = await openRepository(database, '10.100.0.0/16')
  const first = await repository.allocate('a')
  const second = await repository.allocate('b')
  t.match(first, { ip: '10.100.0.2', position: 2, mac: /^02(:[0-9a-f]{2}){5}$/ })
  t.match(second, { ip: '10.100.0.3' })
  t.not(first?.mac, second?.mac)
  t.same(await repository.allocate('a'), first)
  await repository.saveSpec('a', { spec: { egress: 'all', uid: 1_900_000_001, limits: { downloadBps: 5_000_000_000 } }, changing: true })
  const again = await openRepository(database, '10.100.0.0/16')
  t.same((await again.all()).find(({ instanceId }) => instanceId === 'a'), { ...first, changing: true, spec: { egress: 'all', uid: 1_900_000_001, limits: { downloadBps: 5_000_000_000 } } })
})

eachDatabase(t, 'a small network gives all its addresses but its own, the gateway\'s and the broadcast, and then none', async (t, database) => {
  const repository = await openRepository(database, '10.7.0.8/29')
  const given = []
  for (const id of ['a', 'b', 'c', 'd', 'e']) given.push((await repository.allocate(id))?.ip)
  t.same(given, ['10.7.0.10', '10.7.0.11', '10.7.0.12', '10.7.0.13', '10.7.0.14'])
  t.equal(await repository.allocate('f'), undefined)
  await repository.remove('c')
  t.equal((await repository.allocate('f'))?.ip, '10.7.0.12')
  t.equal(await repository.allocate('g'), undefined)
})

eachDatabase(t, 'an address that was given back is used again after all others', async (t, database) => {
  const repository = await openRepository(database, '10.7.0.0/28')
  t.equal((await repository.allocate('a'))?.position, 2)
  await repository.remove('a')
  const positions = []
  for (let at = 0; at < 13; at++) {
    positions.push((await repository.allocate(`x${at}`))?.position)
    await repository.remove(`x${at}`)
  }
  t.same(positions, [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 2])
})

eachDatabase(t, 'each host has the whole network for itself', async (t, database) => {
  const [one, two] = [await openRepository(database, '10.7.0.0/28', 'one'), await openRepository(database, '10.7.0.0/28', 'two')]
  t.equal((await one.allocate('a'))?.ip, '10.7.0.2')
  t.equal((await two.allocate('b'))?.ip, '10.7.0.2')
  await two.remove('a')
  t.same((await one.all()).map(({ instanceId }) => instanceId), ['a'], 'and takes nothing from another')
})

eachDatabase(t, 'processes that allocate at the same time get different addresses, and one for the same instance', async (t, database, url) => {
  const repository = await openRepository(database, '10.100.0.0/16')
  const program = new URL('programs/allocate.js', import.meta.url)
  const ids = (name: string): string[] => Array.from({ length: 25 }, (_, at) => `${name}${at}`)
  await Promise.all(['x', 'y', 'z'].map((name) => runModule(program, [url, 'host', ...ids(name), ...ids('shared')])))
  const all = await repository.all()
  t.equal(all.length, 100)
  for (const key of ['ip', 'mac', 'position', 'instanceId'] as const) t.equal(new Set(all.map((record) => record[key])).size, 100, key)
})

eachDatabase(t, 'the tables go as they came', async (t, database) => {
  await openRepository(database, '10.7.0.0/28')
  await revertPlugin(database, 'networking', MIGRATIONS)
  t.equal(await database.schema.hasTable('networking_addresses'), false)
  t.equal(await database.schema.hasTable('networking_cursors'), false)
})
