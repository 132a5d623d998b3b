import t from 'tap'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { manifest } from '../../../plugins/pushes/manifest.ts'
import type { NewPush } from '../../../plugins/pushes/record.ts'
import { PushRepository } from '../../../plugins/pushes/repository.ts'
import { withLateCommit } from '../../helpers/late-commit.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'

const push = (id: string, isLent = false): NewPush => ({
  id, image: `h/${'x'.repeat(255)}:1`, digest: `sha256:${'a'.repeat(64)}`, origins: ['localhost/a', 'h/a'], target: 'h/t:1', destination: 'localhost/t:1', insecure: true, isLent, keyId: `key of ${id}`, createdAt: 1_800_000_000_123
})

eachDatabase(t, 'pushes keep their order and their fields, whatever becomes of them', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new PushRepository(database, 'host-1')
  const other = new PushRepository(database, 'host-2')
  for (const id of ['a', 'b', 'c']) await repository.insert(push(id))
  await other.insert(push('d'))
  t.same((await repository.all()).map(({ id }) => id), ['c', 'b', 'a'])
  t.same(await repository.find('a'), { ...push('a'), status: 'queued', layers: null, bytes: null, error: null, completedAt: null })
  t.equal(await repository.find('A'), undefined)
  t.equal(await repository.find('d'), undefined, 'another host has its own')
  await repository.begin('a')
  await repository.weigh('a', { layers: 3, bytes: 2 ** 40 })
  t.match(await repository.find('a'), { status: 'pushing', layers: 3, bytes: 2 ** 40 })
  await repository.finish('a', 1_800_000_000_456)
  t.match(await repository.find('a'), { status: 'pushed', error: null, completedAt: 1_800_000_000_456 })
  await repository.finish('a', 1, 'too late')
  t.match(await repository.find('a'), { status: 'pushed' }, 'what has ended stays as it ended')
  await repository.finish('b', 5, 'ü'.repeat(1000))
  t.match(await repository.find('b'), { status: 'failed', error: 'ü'.repeat(1000), completedAt: 5 })
})

eachDatabase(t, 'the next server takes up what has not ended, and the oldest are forgotten', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new PushRepository(database, 'host-1')
  for (const [id, isLent] of [['a', false], ['b', true], ['c', true], ['d', false], ['e', false]] as const) await repository.insert(push(id, isLent))
  for (const id of ['a', 'b']) await repository.begin(id)
  t.match(await repository.takeUp('interrupted', 7), [{ id: 'a', status: 'queued' }, { id: 'd', status: 'queued' }, { id: 'e', status: 'queued' }])
  for (const id of ['b', 'c']) t.match(await repository.find(id), { status: 'failed', error: 'interrupted', completedAt: 7 })
  await repository.finish('d', 8)
  await repository.forget(3)
  t.same((await repository.all()).map(({ id }) => id), ['e', 'd', 'c', 'b', 'a'])
  await repository.forget(2)
  t.same((await repository.all()).map(({ id }) => id), ['e', 'd', 'c', 'a'], 'what has not ended is not counted')
  await repository.forget(1)
  t.same((await repository.all()).map(({ id }) => id), ['e', 'd', 'a'])
})

withLateCommit(t, 'a push whose commit is still to come when it is removed is not there afterwards', async (t, { database, lose, committed, journal, told }) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new PushRepository(database, 'host', journal)
  await lose(async () => await repository.insert(push('a')))
  await repository.remove('a')
  await committed()
  t.same(await repository.all(), [])
  t.same(told, ['created a', 'deleted a'])
})
