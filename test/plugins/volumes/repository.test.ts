// Who may have a volume, decided by the database, the same on SQLite and MariaDB.
import t from 'tap'
import { BerthError } from '../../../core/errors/define.ts'
import { migratePlugin, revertPlugin } from '../../../core/db/migrate.ts'
import { manifest } from '../../../plugins/volumes/manifest.ts'
import type { VolumeRecord } from '../../../plugins/volumes/record.ts'
import { VolumeRepository } from '../../../plugins/volumes/repository.ts'
import { withLateCommit } from '../../helpers/late-commit.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'

const record = (id: string, fields: Partial<VolumeRecord> = {}): VolumeRecord =>
  ({ id, status: 'creating', name: `name-${id}`, sizeGb: 3, tags: { 'a b': 'ü' }, createdAt: 1_780_000_000_123, generation: 0, ...fields })
const claim = (volumeId: string, readonly: boolean) => ({ volumeId, readonly, mountPath: `/mnt/${volumeId}` })

async function codeOf (work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'done'
  } catch (error) {
    if (error instanceof BerthError) return error.code
    throw error
  }
}

eachDatabase(t, 'what is stored comes back as it was, for one host', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new VolumeRepository(database, 'host')
  t.equal(await repository.insert(record('a')), undefined)
  t.equal(await repository.insert({ ...record('a'), name: 'another' }), 'id', 'an id is unique')
  t.equal(await new VolumeRepository(database, 'other').insert(record('a')), 'id')
  t.equal(await repository.insert({ ...record('b'), name: record('a').name.toUpperCase() }), 'name', 'so is a name, whatever its case')
  t.equal(await repository.insert({ ...record('b'), name: record('a').name, owner: 'builds' }), undefined, 'but among callers alone')
  await repository.giveUp({ ...record('b'), name: record('a').name })
  t.same(await repository.all(), [record('a')])
  t.same(await repository.ready(), [])
  t.equal(await repository.find('a'), undefined)
  await repository.complete('a', 5)
  t.match(await repository.find('a'), { ...record('a'), status: 'ready', sizeGb: 5 })
  t.same(await new VolumeRepository(database, 'other').all(), [])
  await t.rejects(repository.complete('a', 5), /gone/)
  t.equal(await repository.isLeft(record('a')), false)
  await repository.giveUp(record('a'))
  t.equal((await repository.all()).length, 1, 'what is whole stays')
  await repository.beginDelete('a')
  t.equal(await repository.isLeft({ ...record('a'), createdAt: 1 }), false, 'another one of this id')
  t.equal(await repository.isLeft(record('a')), true)
  await repository.giveUp(record('a'))
  t.same(await repository.all(), [])
  await revertPlugin(database, manifest.id, manifest.migrations)
  t.notOk(await database.schema.hasTable('volumes_volumes'))
})

eachDatabase(t, 'no id of a volume is the name of another one, and no name another\'s id, also of two that are made at once', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new VolumeRepository(database, 'host')
  const data = record('a', { name: 'db-Data' })
  t.equal(await repository.insert(data), undefined)
  for (const id of ['db-Data', 'DB-data']) t.equal(await repository.insert(record(id, { name: 'x' })), 'id', id)
  t.equal(await repository.insert(record('b', { name: 'a' })), 'name')
  t.equal(await repository.insert(record('b', { name: 'a', owner: 'builds' })), undefined, 'callers find no volume of a plugin')
  t.equal(await repository.insert(record('x', { name: 'b' })), undefined)
  t.equal(await repository.insert(record('same', { name: 'same' })), undefined, 'its own name is nobody else\'s')
  t.equal(await new VolumeRepository(database, 'other').insert(record('y', { name: 'a' })), undefined, 'another host has its own')
  await database('volumes_volumes').where({ id: 'a' }).update({ name_key: null })
  t.equal(await repository.insert(record('db-Data', { name: 'z' })), 'id', 'a name that an older volume shares is one, too')
  await repository.abandon('a')
  t.equal(await repository.insert(record('db-Data', { name: 'z' })), undefined, 'what is being deleted has none')
  for (let round = 0; round < 3; round++) {
    const [one, other] = [`one-${round}`, `other-${round}`]
    const both = await Promise.all([repository.insert(record(one, { name: other })), repository.insert(record(other, { name: one }))])
    t.equal(both.filter((taken) => taken === undefined).length, 1, both.join())
  }
})

eachDatabase(t, 'one writer or many readers, all volumes of a request or none', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new VolumeRepository(database, 'host')
  for (const id of ['a', 'b', 'c']) {
    await repository.insert(record(id))
    await repository.complete(id, 1)
  }
  await repository.attach('one', [claim('a', false)], 1)
  t.equal(await codeOf(repository.attach('two', [claim('a', true)], 2)), 'volume_in_use')
  t.equal(await codeOf(repository.attach('one', [claim('a', false)], 2)), 'volume_in_use')
  await repository.attach('one', [claim('b', true)], 3)
  await repository.attach('two', [claim('b', true)], 4)
  t.equal(await codeOf(repository.attach('three', [claim('b', false)], 5)), 'volume_in_use')
  t.equal(await codeOf(repository.attach('three', [claim('c', false), claim('b', false)], 5)), 'volume_in_use')
  t.equal(await codeOf(repository.attach('three', [claim('c', false), claim('nobody', true)], 5)), 'not_found')
  t.same(await repository.attachmentsOf('three'), [], 'nothing of it')
  t.equal((await repository.find('c'))?.generation, 0)
  t.equal((await repository.find('a'))?.generation, 1, 'a writer changes what is known of it')
  t.equal((await repository.find('b'))?.generation, 0, 'a reader does not')
  t.equal(await codeOf(repository.beginDelete('b')), 'conflict')
  await repository.detach('one', ['b'])
  t.equal(await codeOf(repository.beginDelete('b')), 'conflict')
  await repository.detach('two', ['a', 'b'])
  t.equal(await codeOf(repository.attach('one', [claim('b', false)], 6)), 'done')
  t.match((await repository.ready()).map(({ id, attachments }) => [id, attachments.length]).sort(), [['a', 1], ['b', 1], ['c', 0]])
  await repository.beginDelete('c')
  t.equal(await codeOf(repository.attach('one', [claim('c', true)], 7)), 'not_found')
})

eachDatabase(t, 'of many that want one volume at once, exactly one writer wins', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new VolumeRepository(database, 'host')
  for (const id of ['a', 'b']) {
    await repository.insert(record(id))
    await repository.complete(id, 1)
  }
  const names = Array.from({ length: 8 }, (_, index) => `instance-${index}`)
  const outcomes = await Promise.all(names.map(async (name) => await codeOf(repository.attach(name, [claim('a', false)], 1))))
  t.same(outcomes.sort(), ['done', ...Array.from({ length: 7 }, () => 'volume_in_use')])
  t.equal((await repository.attachments()).length, 1)
  // Two volumes in either order, and a delete in the middle.
  const both = await Promise.all([
    ...names.map(async (name, index) => await codeOf(repository.attach(`x-${name}`, index % 2 === 0 ? [claim('b', true)] : [claim('b', true), claim('a', true)], 1))),
    codeOf(repository.beginDelete('b'))
  ])
  const deleted = both.pop()
  t.ok(deleted === 'done' ? both.every((code) => code !== 'done') : deleted === 'conflict', `${deleted ?? ''} beside ${both.join(', ')}`)
})

withLateCommit(t, 'a volume is left whose commit is still to come, its deletion is told, and so are attachments', async (t, { database, lose, committed, journal, told }) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new VolumeRepository(database, 'host', journal)
  await lose(async () => await repository.insert(record('a')))
  t.equal(await repository.isLeft(record('a')), true)
  await committed()
  await lose(async () => { await repository.complete('a', 1) })
  await repository.abandon('a')
  t.same(told, ['created a', 'deleted a'])
  await repository.insert(record('b'))
  await repository.complete('b', 1)
  await lose(async () => { await repository.attach('one', [claim('b', true)], 1) })
  t.match(await repository.attachmentsOf('one'), [{ volumeId: 'b' }])
})
