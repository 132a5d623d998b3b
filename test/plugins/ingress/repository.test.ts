// Which ingress has which host, decided by the database, the same on SQLite and MariaDB.
import t from 'tap'
import { migratePlugin, revertPlugin } from '../../../core/db/migrate.ts'
import { manifest } from '../../../plugins/ingress/manifest.ts'
import type { IngressRecord } from '../../../plugins/ingress/record.ts'
import { IngressRepository } from '../../../plugins/ingress/repository.ts'
import { withLateCommit } from '../../helpers/late-commit.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'

const record = (id: string): IngressRecord => ({
  id, name: `name-${id}`, createdAt: 1_780_000_000_123, tags: { 'a b': 'ü' },
  rules: [{ hostname: `${id}.test`, port: 443, path: '/', instance: 'web', targetPort: 80, tls: true, redirectHttp: true, auth: { header: 'x-key', sealed: 'sealed' } }]
})

eachDatabase(t, 'an ingress has its name and all of its hosts, or nothing is stored', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const [repository, other] = [new IngressRepository(database, 'host'), new IngressRepository(database, 'other')]
  t.equal(await repository.insert(record('a'), ['one', 'two']), true)
  t.same(await repository.all(), [record('a')])
  t.equal(await repository.insert({ ...record('b'), name: 'name-a' }, ['three']), false, 'a name is unique')
  t.equal(await repository.insert(record('b'), ['three', 'two']), false, 'so is a host')
  t.equal(await repository.ownerOf('three'), undefined, 'of what was refused nothing is left')
  t.same(await repository.all(), [record('a')])
  t.equal(await other.insert(record('c'), ['two']), true, 'hosts of a database do not meet')
  const outcomes = await Promise.all(['d', 'e', 'f', 'g'].map(async (id) => await repository.insert(record(id), ['raced'])))
  t.equal(outcomes.filter((isStored) => isStored).length, 1, 'of those who come at the same time one gets it')
  await repository.remove(record('a'))
  t.equal(await repository.ownerOf('two'), undefined)
  t.equal(await other.ownerOf('two'), 'c')
  t.equal(await repository.insert(record('b'), ['two']), true)
  await revertPlugin(database, manifest.id, manifest.migrations)
  t.notOk(await database.schema.hasTable('ingress_ingresses'))
})

withLateCommit(t, 'an ingress whose commit is still to come when it is removed leaves nothing, and its removal is waited for', async (t, { database, lose, committed, journal, told }) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new IngressRepository(database, 'host', journal)
  await lose(async () => await repository.insert(record('a'), ['one']))
  await repository.remove(record('a'))
  await committed()
  t.same(told, ['created a', 'deleted a'])
  t.equal(await repository.insert(record('a'), ['one']), true, 'its name and its hosts are free')
  await lose(async () => { await repository.remove(record('a')) })
  await repository.settle(record('a'))
  t.same(await repository.all(), [])
})
