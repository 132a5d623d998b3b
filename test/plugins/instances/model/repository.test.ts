// The rows of instances, the same on SQLite and MariaDB.
import t from 'tap'
import { migratePlugin } from '../../../../core/db/migrate.ts'
import { manifest } from '../../../../plugins/instances/manifest.ts'
import { down } from '../../../../plugins/instances/migrations/0001-create-instances.ts'
import type { InstanceRecord } from '../../../../plugins/instances/model/record.ts'
import { createRepository } from '../../../../plugins/instances/model/repository.ts'
import { eachDatabase } from '../../../helpers/mariadb.ts'

const handle = { driver: 'qemu', version: 1, vmmVersion: '7.2', pid: 5, startTicks: '123456789012', bootId: 'b', directory: '/d' }

function record (id: string, fields: Partial<InstanceRecord> = {}): InstanceRecord {
  return {
    id,
    hostId: 'host-a',
    name: `name-${id}`,
    status: 'creating',
    version: 1,
    createdAt: 1_780_000_000_123,
    image: 'docker.io/library/a:latest',
    imageDigest: 'sha256:x',
    spec: {
      cmd: ['ü', ''], env: { A: 'b\n' }, hypervisor: 'qemu', vcpus: 2, memoryBytes: 2 ** 35, overlayBytes: 2 ** 36, skipGuestAgent: false, skipKernelHeaders: true, tags: {}
    },
    slot: null,
    handle: null,
    startedAt: null,
    runningAt: null,
    stoppedAt: null,
    standbyAt: null,
    exit: null,
    life: {},
    ...fields
  }
}

eachDatabase(t, 'what is stored comes back as it was, oldest first, for one host', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = createRepository(database, 'host')
  const younger = record('b', { createdAt: 1_780_000_000_124, handle, startedAt: 1, runningAt: 2, stoppedAt: 1_780_000_000_999, standbyAt: 1_780_000_000_998, exit: { exitCode: null, exitMessage: 'gone' }, life: { expiry: { at: 1_780_000_000_999, boot: 'b', uptimeMs: 5, by: 'ttl' } } })
  for (const one of [younger, record('a'), record('c', { hostId: 'host-b' })]) t.equal(await repository.insert(one), undefined)
  t.same(await repository.onHost('host-a'), [record('a'), younger])
})

eachDatabase(t, 'a name is unique over all hosts, a slot within one', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = createRepository(database, 'host')
  t.equal(await repository.insert(record('a', { slot: 0 })), undefined)
  t.equal(await repository.insert(record('b', { name: 'name-a', hostId: 'host-b', slot: 0 })), 'name')
  t.equal(await repository.insert(record('c', { slot: 0 })), 'slot')
  t.equal(await repository.insert(record('d', { slot: 0, hostId: 'host-b' })), undefined)
  t.equal(await repository.insert(record('e')), undefined)
  t.equal(await repository.insert(record('f')), undefined, 'many have no slot')
})

eachDatabase(t, 'of two changes based on one version, the second fails', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = createRepository(database, 'host')
  const first = record('a')
  await repository.insert(first)
  const second = await repository.update(first, { status: 'active', handle, exit: { exitCode: 0, exitMessage: 'success' } })
  t.match(second, { version: 2, status: 'active', handle })
  await t.rejects(repository.update(first, { status: 'deleting' }), { code: 'internal_error' })
  t.same(await repository.onHost('host-a'), [second])
  const third = await repository.update(second, { handle: null, exit: null })
  t.same(await repository.onHost('host-a'), [third])
  await repository.remove('a')
  await repository.remove('a')
  t.same(await repository.onHost('host-a'), [])
})

eachDatabase(t, 'a row that was stored ahead becomes an instance, unless the name is taken', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = createRepository(database, 'host')
  const ahead = record('a', { name: '~a', image: '', imageDigest: '', slot: 3 })
  await repository.insert(ahead)
  await repository.insert(record('b'))
  const facts = { name: 'name-b', createdAt: 1_780_000_000_200, image: 'docker.io/library/b:latest', imageDigest: 'sha256:y', spec: { ...ahead.spec, vcpus: 3 } }
  t.equal(await repository.claim(ahead, facts), undefined)
  t.same(await repository.onHost('host-a'), [ahead, record('b')], 'then it is as it was')
  const claimed = await repository.claim(ahead, { ...facts, name: 'free' })
  t.same(claimed, { ...ahead, ...facts, name: 'free', version: 2 })
  t.same(await repository.onHost('host-a'), [record('b'), claimed])
  await t.rejects(repository.claim(ahead, { ...facts, name: 'other' }), { code: 'internal_error' })
})

eachDatabase(t, 'the migration can be taken back with rows in the table', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  await createRepository(database, 'host').insert(record('a'))
  await down(database)
  t.equal(await database.schema.hasTable('instances_instances'), false)
})
