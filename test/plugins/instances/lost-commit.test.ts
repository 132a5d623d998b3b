// Changes whose commit was done and whose answer was lost: they are looked up, and what is stored next is stored.
import t from 'tap'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { LiveInstance } from '../../../plugins/instances/model/live-instance.ts'
import { manifest } from '../../../plugins/instances/manifest.ts'
import type { InstanceRecord } from '../../../plugins/instances/model/record.ts'
import { createRepository, type InstanceRepository } from '../../../plugins/instances/model/repository.ts'
import { eventually } from '../../helpers/eventually.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'
import { startAway } from './away.ts'
import { openDatabase } from './database.ts'

const RECORD: InstanceRecord = {
  id: 'a', hostId: 'host-a', name: 'name-a', status: 'creating', version: 1, createdAt: 1_780_000_000_123, image: 'docker.io/library/a:latest', imageDigest: 'sha256:x',
  spec: { cmd: [], env: {}, hypervisor: 'qemu', vcpus: 1, memoryBytes: 2 ** 28, overlayBytes: 2 ** 30, skipGuestAgent: false, skipKernelHeaders: true, tags: {} },
  slot: null, handle: null, startedAt: null, runningAt: null, stoppedAt: null, standbyAt: null, exit: null, life: {}
}

/** The real repository on a connection that goes away: after the commit of the next change, and for as many look-ups. */
function losing (real: InstanceRepository, commits: number, lookUps: number): InstanceRepository {
  const lost = (): never => { throw Object.assign(new Error('Connection lost'), { fatal: true }) }
  return {
    ...real,
    async update (record, patch) {
      const stored = await real.update(record, patch)
      return commits-- > 0 ? lost() : stored
    },
    async versionOf (id) {
      return lookUps-- > 0 ? lost() : await real.versionOf(id)
    }
  }
}

eachDatabase(t, 'a change whose answer was lost is stored', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = createRepository(database, 'host')
  await repository.insert(RECORD)
  const instance = new LiveInstance(RECORD, losing(repository, 1, 0), () => undefined, () => {})
  await instance.save({ startedAt: 5 })
  t.match(instance.record, { startedAt: 5, version: 3 })
  await instance.save({ stoppedAt: 6 })
  t.match(await repository.onHost('host-a'), [{ startedAt: 5, stoppedAt: 6, version: 4 }])
})

eachDatabase(t, 'a row that is ahead of what is known is read again, and later changes are stored as this server knows the instance', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = createRepository(database, 'host')
  await repository.insert(RECORD)
  // The database is away for the look-up, too: the caller hears that it failed.
  const instance = new LiveInstance(RECORD, losing(repository, 1, 1), () => undefined, () => {})
  await t.rejects(instance.save({ startedAt: 5 }), { message: 'Connection lost' })
  t.equal(instance.record.startedAt, null)
  for (const stoppedAt of [7, 8]) await instance.save({ stoppedAt })
  t.match(await repository.onHost('host-a'), [{ startedAt: null, stoppedAt: 8 }], 'what failed is not there')
  await repository.remove('a')
  await t.rejects(instance.save({ stoppedAt: 9 }), { code: 'internal_error' }, 'a row that is gone stays gone')
})

eachDatabase(t, 'a change that never reached the database is stored, although the row is ahead by the change before', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const real = createRepository(database, 'host')
  await real.insert(RECORD)
  const once = losing(real, 1, 1)
  let isAway = false
  const instance = new LiveInstance(RECORD, {
    ...once,
    async update (record, patch) {
      if (!isAway) return await once.update(record, patch)
      isAway = false
      throw Object.assign(new Error('connect ECONNREFUSED'), { fatal: true })
    }
  }, () => undefined, () => {})
  t.match(await instance.saveFact({ runningAt: 5 }), { message: 'Connection lost' })
  isAway = true
  await instance.save({ standbyAt: 6 })
  t.equal(instance.isStored, true)
  t.match(await real.onHost('host-a'), [{ runningAt: 5, standbyAt: 6, version: instance.record.version }])
})

t.test('the start of a program and the end of a VM that cannot be stored, as the database is away, are stored later', async (t) => {
  const { call, dataDir, go, host, make, waitFor } = await startAway(t)
  const database = await openDatabase(dataDir)
  t.teardown(async () => { await database.destroy() })
  const row = async (id: string): Promise<Record<string, unknown>> => Object(await database('instances_instances').where({ id }).first())
  go('done', 'done', 'not done')
  const id = await make('web')
  await waitFor('web', 'Running')
  t.equal((await row(id))['running_at'], null)
  await eventually('the start is stored', async () => (await row(id))['running_at'] !== null, { limitMs: 20_000 })
  t.match(await call('GET', '/instances/web'), { body: { state: 'Running', current_phase: 'running' } })
  go('not done')
  await host.vm.exit({ exitCode: 3 })
  t.match(await waitFor('web', 'Stopped'), { body: { state: 'Stopped' } })
  t.match(await call('GET', '/instances/web'), { body: { exit_code: 3, current_phase: 'stopped' } })
  t.not((await row(id))['handle'], null)
  await eventually('the end is stored', async () => (await row(id))['handle'] === null, { limitMs: 20_000 })
  const { version } = await row(id)
  await call('PATCH', '/instances/web', { ttl: '1h' })
  t.equal((await row(id))['version'], Number(version) + 1, 'and once')
})
