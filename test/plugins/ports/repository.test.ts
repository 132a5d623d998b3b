// Which port of the host is whose, decided by the database, the same on SQLite and MariaDB.
import t from 'tap'
import { migratePlugin, revertPlugin } from '../../../core/db/migrate.ts'
import { manifest } from '../../../plugins/ports/manifest.ts'
import type { PublishedPort } from '../../../plugins/ports/record.ts'
import { PortRepository } from '../../../plugins/ports/repository.ts'
import { withLateCommit } from '../../helpers/late-commit.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'

const port = (id: string, hostPort: number, fields: Partial<PublishedPort> = {}): PublishedPort => ({ id, instanceId: 'web', protocol: 'tcp', address: '127.0.0.1', hostPort, instancePort: 80, createdAt: 1_780_000_000_123, ...fields })

eachDatabase(t, 'all ports of a request are stored, or none, and a place is had once', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const [repository, other] = [new PortRepository(database, 'host'), new PortRepository(database, 'other')]
  t.equal(await repository.insert([port('a', 1), port('b', 2)]), true)
  t.same(await repository.all(), [port('a', 1), port('b', 2)])
  t.equal(await repository.insert([port('c', 3), port('d', 2)]), false)
  t.same((await repository.all()).map(({ id }) => id), ['a', 'b'], 'of what was refused nothing is left')
  t.equal(await repository.insert([port('c', 2, { protocol: 'udp' }), port('d', 2, { address: '127.0.0.2' })]), true, 'another protocol or address is another place')
  t.equal(await other.insert([port('e', 2)]), true, 'hosts of a database do not meet')
  await repository.remove(['a', 'c', 'e'])
  t.same((await repository.all()).map(({ id }) => id), ['b', 'd'])
  t.same((await other.all()).map(({ id }) => id), ['e'], 'and take nothing from each other')
  await repository.remove([])
  await revertPlugin(database, manifest.id, manifest.migrations)
  t.notOk(await database.schema.hasTable('ports_ports'))
})

withLateCommit(t, 'a port whose commit is still to come when it is taken back has its place free afterwards', async (t, { database, lose, committed, journal, told }) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new PortRepository(database, 'host', journal)
  await lose(async () => await repository.insert([port('a', 1)]))
  await repository.remove(['a'])
  await committed()
  t.same(await repository.all(), [])
  t.same(told, ['created a', 'deleted a'])
  t.equal(await repository.insert([port('b', 1)]), true)
})
