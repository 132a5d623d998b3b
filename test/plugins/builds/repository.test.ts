// What is stored of builds and builders, the same on SQLite and MariaDB.
import t from 'tap'
import { migratePlugin, revertPlugin } from '../../../core/db/migrate.ts'
import { BuilderRepository } from '../../../plugins/builds/builders/repository.ts'
import type { BuilderRecord } from '../../../plugins/builds/builders/record.ts'
import { manifest } from '../../../plugins/builds/manifest.ts'
import type { BuildRecord } from '../../../plugins/builds/record.ts'
import { BuildRepository } from '../../../plugins/builds/repository.ts'
import { withLateCommit } from '../../helpers/late-commit.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'
import { digestOf, outcomeOf } from './scripted-runner.ts'

const record = (id: string, fields: Partial<BuildRecord> = {}): BuildRecord => ({
  id, status: 'queued', builderId: null, instanceId: null, imageRef: null, imageDigest: null, error: null, provenance: { sourceHash: 'ab' }, tags: { 'a b': 'ü' },
  createdAt: 1_780_000_000_123, startedAt: null, completedAt: null, ...fields
})

eachDatabase(t, 'a build comes back as it was stored, through all its states', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new BuildRepository(database, 'host')
  await repository.insert(record('a', { builderId: 'b1' }))
  await repository.insert(record('b', { createdAt: 1_780_000_000_122 }))
  t.same(await repository.find('a'), record('a', { builderId: 'b1' }))
  t.equal(await repository.find('A'), undefined)
  t.same((await repository.all()).map(({ id }) => id), ['b', 'a'], 'oldest first')
  t.same(await new BuildRepository(database, 'other').all(), [])
  await repository.setStarted('a', 5)
  await repository.setInstance('a', 'vm')
  await repository.setPushing('a')
  await repository.setPushing('a')
  t.match(await repository.find('a'), { status: 'pushing', startedAt: 5, instanceId: 'vm' })
  await repository.setOutcome('a', outcomeOf({ id: 'a' }))
  t.match(await repository.find('a'), { status: 'pushing', imageDigest: digestOf('a'), provenance: { builder: 'buildah', timestamp: '2026-01-31T00:00:00.000Z' } })
  await repository.finish('a', { status: 'ready' }, 9)
  t.match(await repository.find('a'), { status: 'ready', completedAt: 9, error: null })
  await repository.finish('b', { status: 'failed', error: 'why ü' }, 10)
  t.match(await repository.find('b'), { status: 'failed', error: 'why ü', startedAt: null })
  t.same(await repository.unfinished(), [])
  await t.rejects(repository.setPushing('a'), /is over/)
  await t.rejects(repository.finish('a', { status: 'cancelled' }, 11), /is over/)
  t.same(await repository.outdated(1, 0), ['b'])
  t.same(await repository.outdated(5, 10), ['a'])
  t.same(await repository.outdated(5, 0), [])
  await repository.remove('a')
  t.same((await repository.all()).map(({ id }) => id), ['b'])
})

eachDatabase(t, 'a builder comes back as it was stored', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new BuilderRepository(database, 'host')
  const builder: BuilderRecord = { id: 'b1', status: 'creating', name: 'Müller', diskSizeGb: 3, volumeId: 'cache-1', tags: { a: 'b' }, createdAt: 1, lastUsedAt: null }
  t.ok(await repository.insert(builder))
  t.notOk(await repository.insert(builder))
  t.equal(await repository.find('b1'), undefined, 'nobody sees it yet')
  t.same(await repository.all(), [builder])
  await repository.setReady('b1', 'cache-2')
  await repository.setUsed('b1', 7)
  t.same(await repository.find('b1'), { ...builder, status: 'ready', volumeId: 'cache-2', lastUsedAt: 7 })
  await repository.setStatus('b1', 'pruning')
  t.match(await repository.find('b1'), { status: 'pruning' })
  await repository.remove('b1')
  await t.rejects(repository.setReady('b1', 'x'), /gone/)
  t.same(await repository.all(), [])
  await revertPlugin(database, manifest.id, manifest.migrations)
  t.notOk(await database.schema.hasTable('builds_builds'))
  t.notOk(await database.schema.hasTable('builds_builders'))
})

withLateCommit(t, 'a build whose commit is still to come when it is removed is told as removed', async (t, { database, lose, journal, told }) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new BuildRepository(database, 'host', journal)
  await lose(async () => { await repository.insert(record('a')) })
  await repository.remove('a')
  t.same(await repository.all(), [])
  t.same(told, ['created a', 'deleted a'])
})

withLateCommit(t, 'a builder whose commit is still to come is found by whoever takes it back, and so is its prune', async (t, { database, lose, committed }) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new BuilderRepository(database, 'host')
  await lose(async () => await repository.insert({ id: 'b1', status: 'creating', name: null, diskSizeGb: 3, volumeId: 'cache-1', tags: {}, createdAt: 1, lastUsedAt: null }))
  t.match(await repository.settled('b1', 'cache-1'), { status: 'creating' })
  await committed()
  await lose(async () => { await repository.setStatus('b1', 'pruning') })
  t.match(await repository.settled('b1', 'cache-1'), { status: 'pruning' })
})
