// What survives a restart: the epochs of VMs, and numbers of revisions that nobody has twice.
import t from 'tap'
import type { Knex } from 'knex'
import { migratePlugin, revertPlugin } from '../../../core/db/migrate.ts'
import { EgressRepository } from '../../../plugins/egress/repository.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'

const MIGRATIONS = new URL('../../../plugins/egress/migrations/', import.meta.url)

async function openRepository (database: Knex, hostId = 'host'): Promise<EgressRepository> {
  await migratePlugin(database, 'egress', MIGRATIONS)
  const repository = new EgressRepository(database, hostId)
  await repository.open()
  return repository
}

eachDatabase(t, 'revisions only grow, whoever asks, and jump over what a proxy has seen', async (t, database) => {
  const repositories = [await openRepository(database), await openRepository(database)]
  const given = await Promise.all(Array.from({ length: 20 }, async (_, index) => await repositories[index % 2]?.nextRevision()))
  t.equal(new Set(given).size, 20)
  t.same([...given].map(Number).sort((a, b) => a - b), Array.from({ length: 20 }, (_, index) => index + 1))
  const again = await openRepository(database)
  t.equal(await again.nextRevision(10), 21, 'after a restart')
  t.equal(await again.nextRevision(500), 501)
  t.equal(await again.nextRevision(), 502)
  t.equal(await (await openRepository(database, 'another-host')).nextRevision(), 1)
})

eachDatabase(t, 'a VM has one epoch, the last one, until it is removed', async (t, database) => {
  const repository = await openRepository(database)
  await repository.save({ instanceId: 'a', address: '10.100.0.2', epoch: 'one' })
  await repository.save({ instanceId: 'b', address: '10.100.0.3', epoch: 'one' })
  await repository.save({ instanceId: 'a', address: '10.100.0.9', epoch: 'two' })
  const byId = (await repository.all()).toSorted((x, y) => x.instanceId < y.instanceId ? -1 : 1)
  t.same(byId, [{ instanceId: 'a', address: '10.100.0.9', epoch: 'two' }, { instanceId: 'b', address: '10.100.0.3', epoch: 'one' }])
  t.same(await (await openRepository(database, 'another-host')).all(), [])
  await repository.remove('a')
  await repository.remove('a')
  t.same((await repository.all()).map(({ instanceId }) => instanceId), ['b'])
})

eachDatabase(t, 'the tables can be taken back', async (t, database) => {
  await openRepository(database)
  await revertPlugin(database, 'egress', MIGRATIONS)
  t.notOk(await database.schema.hasTable('egress_vms'))
  t.notOk(await database.schema.hasTable('egress_revisions'))
})
