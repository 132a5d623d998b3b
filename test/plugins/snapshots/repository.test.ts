// The rows of snapshots and schedules, the same on SQLite and MariaDB.
import t from 'tap'
import type { Knex } from 'knex'
import { migratePlugin, revertPlugin } from '../../../core/db/migrate.ts'
import type { InstanceCopy } from '../../../plugins/instances/contract.ts'
import { manifest } from '../../../plugins/snapshots/manifest.ts'
import type { SnapshotRecord } from '../../../plugins/snapshots/record.ts'
import { SnapshotRepository } from '../../../plugins/snapshots/repository.ts'
import type { ScheduleRecord } from '../../../plugins/snapshots/schedules/record.ts'
import { ScheduleRepository } from '../../../plugins/snapshots/schedules/repository.ts'
import { withLateCommit } from '../../helpers/late-commit.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'

const copy: InstanceCopy = {
  version: 1,
  kind: 'Standby',
  sourceId: 'source',
  sourceName: 'web',
  hypervisor: 'qemu',
  image: 'docker.io/library/a:latest',
  imageDigest: 'sha256:x',
  // longer than a TEXT of MySQL
  spec: { env: { A: 'ü\n'.repeat(40_000) } }
}

function record (id: string, fields: Partial<SnapshotRecord> = {}): SnapshotRecord {
  return {
    id,
    status: 'creating',
    kind: 'Standby',
    name: `name-${id}`,
    sourceId: 'source',
    sourceName: 'web',
    hypervisor: 'qemu',
    imageDigest: 'sha256:x',
    tags: { 'a b': 'c' },
    scheduled: false,
    createdAt: 1_780_000_000_123,
    diskBytes: 0,
    memoryBytes: null,
    compressedBytes: null,
    compression: { algorithm: 'zstd', level: 3 },
    compressionState: 'compressing',
    compressionError: null,
    ...fields
  }
}

function schedule (instanceId: string, fields: Partial<ScheduleRecord> = {}): ScheduleRecord {
  return {
    instanceId,
    interval: '1h30m',
    maxCount: 3,
    maxAge: null,
    namePrefix: null,
    metadata: { a: 'b' },
    nextRunAt: 1_780_000_000_123,
    lastRunAt: null,
    lastSnapshotId: null,
    lastError: null,
    createdAt: 1,
    updatedAt: 2,
    ...fields
  }
}

async function open (database: Knex): Promise<{ own: SnapshotRepository, other: SnapshotRepository }> {
  await migratePlugin(database, manifest.id, manifest.migrations)
  return { own: new SnapshotRepository(database, 'host-a'), other: new SnapshotRepository(database, 'host-b') }
}

eachDatabase(t, 'what is stored comes back as it was, oldest first, for one host', async (t, database) => {
  const { own, other } = await open(database)
  const whole = record('b', { createdAt: 1_780_000_000_124, name: null, scheduled: true, diskBytes: 2 ** 41, memoryBytes: 2 ** 40, compression: null, compressionState: 'none' })
  t.equal(await own.insert(whole), true)
  t.equal(await own.insert(record('a')), true)
  t.equal(await other.insert(record('c')), true)
  t.same(await own.all(), [record('a'), whole])
  t.same(await own.find('a'), record('a'))
  t.equal(await own.find('c'), undefined, 'of another host')
  t.equal(await own.find('A'), undefined, 'in another case')
  t.same(await own.ready(), [])
})

eachDatabase(t, 'a snapshot is known once it is whole, and no more once its removal has begun', async (t, database) => {
  const { own, other } = await open(database)
  await own.insert(record('a'))
  t.equal(await own.withCopy('a'), undefined)
  t.equal(await own.beginDelete('a'), false, 'what is being made is nobody\'s to delete')
  await own.complete('a', { copy, diskBytes: 5, memoryBytes: 2 ** 40 })
  const ready = record('a', { status: 'ready', diskBytes: 5, memoryBytes: 2 ** 40 })
  t.same(await own.ready(), [ready])
  t.same(await own.withCopy('a'), { ...ready, copy })
  t.equal(await own.withCopy('A'), undefined)
  t.equal(await other.withCopy('a'), undefined)
  await t.rejects(own.complete('a', { copy, diskBytes: 5, memoryBytes: 6 }), /gone/, 'once only')
  t.equal(await own.beginDelete('nothing'), false)
  t.equal(await own.beginDelete('A'), false)
  t.equal(await other.beginDelete('a'), false)
  t.equal(await own.beginDelete('a'), true)
  t.equal(await own.beginDelete('a'), true, 'one that failed can be tried again')
  t.same(await own.ready(), [])
  t.equal(await own.withCopy('a'), undefined)
  t.match(await own.find('a'), { status: 'deleting', name: null })
  await own.remove('a')
  await own.remove('a')
  t.same(await own.all(), [])
})

eachDatabase(t, 'a name is unique for one source, and many have none', async (t, database) => {
  const { own, other } = await open(database)
  t.equal(await own.insert(record('a', { name: 'x' })), true)
  t.equal(await own.insert(record('b', { name: 'x' })), false)
  t.equal(await other.insert(record('c', { name: 'x' })), false)
  t.equal(await own.insert(record('d', { name: 'x', sourceId: 'another' })), true)
  t.equal(await own.insert(record('e', { name: null })), true)
  t.equal(await own.insert(record('f', { name: null })), true)
  await own.abandon('a')
  t.equal(await own.insert(record('b', { name: 'x' })), true, 'given up, its name is free')
})

eachDatabase(t, 'a compression ends once, and only that of a whole snapshot', async (t, database) => {
  const { own } = await open(database)
  await own.insert(record('a'))
  t.equal(await own.setCompressed('a', 7), false)
  await own.complete('a', { copy, diskBytes: 5, memoryBytes: 6 })
  await own.setCompressionError('a', 'why')
  t.match(await own.find('a'), { compressionState: 'error', compressionError: 'why', compressedBytes: null })
  t.equal(await own.setCompressed('a', 7), false)
  await own.insert(record('b'))
  await own.complete('b', { copy, diskBytes: 5, memoryBytes: 6 })
  t.equal(await own.setCompressed('b', 2 ** 40), true)
  await own.setCompressionError('b', 'late')
  t.match(await own.find('b'), { compressionState: 'compressed', compressionError: null, compressedBytes: 2 ** 40 })
  await own.beginDelete('b')
  t.equal(await own.setCompressed('b', 7), false)
})

eachDatabase(t, 'schedules come back as they were, the next to run first, on the host that runs them', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const [own, other] = [new ScheduleRepository(database, 'host-a'), new ScheduleRepository(database, 'host-b')]
  const full = schedule('a', { maxCount: null, maxAge: '24h', namePrefix: 'p', nextRunAt: 1_780_000_000_124, lastRunAt: 5, lastSnapshotId: 's', lastError: 'ü'.repeat(500), metadata: {} })
  for (const one of [full, schedule('b')]) await own.insert(one)
  await other.insert(schedule('c'))
  t.same(await own.all(), [schedule('b'), full])
  t.same(await own.find('a'), full)
  t.equal(await own.find('A'), undefined)
  t.equal(await own.find('c'), undefined)
  await t.rejects(own.insert(schedule('c')), 'one for an instance, whoever runs it')
  t.equal(await other.claim(full, 9, 9), false)
  t.equal(await other.remove('a'), false)
  t.equal(await own.remove('a'), true)
  t.equal(await own.remove('a'), false)
})

eachDatabase(t, 'a run is taken once, and what a user sets meanwhile stays', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new ScheduleRepository(database, 'host-a')
  const first = schedule('a')
  await repository.insert(first)
  t.equal(await repository.claim(first, 1_780_000_009_000, 77), true)
  t.equal(await repository.claim(first, 1_780_000_009_000, 78), false)
  await repository.configure({ ...first, interval: '2h', maxCount: 1, nextRunAt: 5, updatedAt: 6 }, 'same')
  await repository.noteSnapshot('a', 's')
  t.same(await repository.find('a'), { ...first, interval: '2h', maxCount: 1, updatedAt: 6, nextRunAt: 1_780_000_009_000, lastRunAt: 77, lastSnapshotId: 's' })
  await repository.noteError('a', 'why')
  await repository.configure({ ...first, nextRunAt: 5 }, 'new')
  t.match(await repository.find('a'), { nextRunAt: 5, lastSnapshotId: 's', lastError: 'why' })
  await repository.noteSnapshot('a', 't')
  t.match(await repository.find('a'), { lastSnapshotId: 't', lastError: null })
})

eachDatabase(t, 'the migrations can be taken back with rows in the tables', async (t, database) => {
  const { own } = await open(database)
  await own.insert(record('a'))
  await revertPlugin(database, manifest.id, manifest.migrations)
  for (const table of ['snapshots_snapshots', 'snapshots_schedules']) t.equal(await database.schema.hasTable(table), false)
})

withLateCommit(t, 'a snapshot whose commit is still to come is found by whoever takes it back', async (t, { database, lose, committed, journal, told }) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new SnapshotRepository(database, 'host', journal)
  await lose(async () => await repository.insert(record('a')))
  t.match(await repository.settled('a'), { status: 'creating' })
  await committed()
  await lose(async () => { await repository.complete('a', { copy, diskBytes: 5, memoryBytes: 6 }) })
  await repository.abandon('a')
  t.same(told, ['created a', 'deleted a'])
  await repository.insert(record('b'))
  await repository.complete('b', { copy, diskBytes: 5, memoryBytes: 6 })
  await lose(async () => await repository.beginDelete('b'))
  t.match(await repository.settled('b'), { status: 'deleting' })
})
