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

eachDatabase(t, 'revisions only grow for who asks, nobody has one twice, and they jump over what a proxy has seen', async (t, database) => {
  const repositories = [await openRepository(database), await openRepository(database)]
  const given = await Promise.all(Array.from({ length: 20 }, async (_, index) => Number(await repositories[index % 2]?.nextRevision())))
  t.equal(new Set(given).size, 20)
  for (const own of [0, 1]) {
    const numbers = given.filter((_, index) => index % 2 === own)
    t.same(numbers, numbers.toSorted((a, b) => a - b))
  }
  const most = Math.max(...given)
  const again = await openRepository(database)
  const first = await again.nextRevision(10)
  t.ok(first > most, 'after a restart')
  t.equal(await again.nextRevision(), first + 1)
  t.equal(await again.nextRevision(5000), 5001)
  t.equal(await again.nextRevision(), 5002)
  t.ok(await (await openRepository(database)).nextRevision() > 5002, 'and after that one, too')
  t.equal(await (await openRepository(database, 'another-host')).nextRevision(), 1)
})

eachDatabase(t, 'a number is a commit only now and then', async (t, database) => {
  const repository = await openRepository(database)
  let statements = 0
  database.on('query', ({ sql }: { sql: string }) => { if (/^(update|insert)/i.test(sql)) statements++ })
  for (let index = 0; index < 250; index++) await repository.nextRevision()
  t.ok(statements > 0 && statements <= 3, `${statements} for 250 numbers`)
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
