// Volumes that belong to a plugin: like any other, and out of callers' reach.
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Type } from 'typebox'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import type { InstanceWorkers, WorkerRequest } from '../../../plugins/instances/contract.ts'
import type { VolumeService } from '../../../plugins/instances/volumes/contract.ts'
import type { StartOptions } from '../instances/app.ts'
import { openDatabase } from '../instances/database.ts'
import { EMPTY, startWithVolumes, type VolumesApp } from './app.ts'

interface App extends VolumesApp { readonly volumes: VolumeService, readonly workers: InstanceWorkers }

async function start (t: Test, options: StartOptions = {}): Promise<App> {
  let found: Pick<App, 'volumes' | 'workers'> | undefined
  const user = definePlugin({
    manifest: { id: 'volumes-user', provides: [], requires: ['volumes', 'workers'], config: Type.Object({}, { additionalProperties: false }) },
    create: ({ volumes, workers }) => ({ async start () { found = { volumes, workers } } })
  })
  const app = await startWithVolumes(t, { ...options, plugins: [user] })
  if (found === undefined) throw new Error('the services are not there')
  return { ...app, ...found }
}

const owned = (id: string, owner = 'builds', name = id): Parameters<VolumeService['create']>[0] => ({ id, name, sizeGb: 2, owner })
const worker = (name: string, volumeId: string): WorkerRequest => ({
  name, image: 'test', argv: ['x'], vcpus: 1, memoryBytes: 2 ** 28, network: 'none', volumes: [{ volumeId, mountPath: '/cache' }], volumeOwner: 'builds', tags: {}
})

t.test('no route shows, attaches or removes it, by its id or its name', async (t) => {
  const app = await start(t)
  await app.volumes.create(owned('hidden', 'builds', 'mine'))
  await app.makeVolume('mine', { id: 'other' })
  t.same(JSON.parse((await app.call('GET', '/volumes')).text).map(({ id }: { id: string }) => id), ['other'])
  t.equal((await app.call('GET', '/volumes/hidden')).status, 404)
  t.equal((await app.call('GET', '/volumes/mine')).body['id'], 'other', 'its name is not in the way')
  t.equal((await app.call('DELETE', '/volumes/hidden')).status, 404)
  t.match(await app.call('POST', '/volumes', { name: 'x', size_gb: 1, id: 'hidden' }), { status: 409, body: { code: 'already_exists' } })
  t.equal((await app.call('POST', '/instances', { name: 'web', image: 'test', overlay_size: '32MB', volumes: [{ volume_id: 'hidden', mount_path: '/data' }] })).status, 404)
  await app.make('web')
  await app.waitFor('web', 'Running')
  t.equal((await app.call('POST', '/instances/web/volumes/hidden', { mount_path: '/data' })).status, 404)
  t.match(await app.volumes.find('mine', 'builds'), { id: 'hidden', sizeBytes: 2 * 2 ** 30 })
  await t.rejects(app.volumes.find('hidden'), { code: 'not_found' })
  await t.rejects(app.volumes.find('hidden', 'others'), { code: 'not_found' })
  t.match(await app.volumes.usage(), { count: 2, sizeBytes: 3 * 2 ** 30 })
})

t.test('its owner removes it, once or twice, and nobody else\'s', async (t) => {
  const app = await start(t)
  await app.makeVolume('callers', { id: 'callers' })
  await app.volumes.create(owned('one'))
  await app.volumes.create(owned('two'))
  await app.volumes.create(owned('three', 'others'))
  await t.rejects(app.volumes.create(owned('one')), { code: 'already_exists' })
  await t.rejects(app.volumes.create(owned('callers')), { code: 'already_exists' })
  t.same([...await app.volumes.ownedBy('builds')].sort(), ['one', 'two'])
  for (const id of ['three', 'callers', 'nothing']) await app.volumes.remove(id, 'builds')
  await app.volumes.remove('one', 'builds')
  await app.volumes.remove('one', 'builds')
  t.same(await app.volumes.ownedBy('builds'), ['two'])
  t.same(await app.files(), ['disks', 'disks/callers.img', 'disks/three.img', 'disks/two.img', ...EMPTY.slice(1)])
})

t.test('a worker has it for writing, and callers see the worker without it', async (t) => {
  const app = await start(t)
  await app.volumes.create(owned('cache'))
  const callers = await app.makeVolume('data', { id: 'data' })
  const { id } = await app.workers.create(worker('builder', 'cache'))
  await app.waitFor('builder', 'Running')
  t.match(app.host.vm.workload?.mounts, [{ path: '/cache', device: 'serial:volume-0', readonly: false }])
  t.same((await app.call('GET', '/instances/builder')).body['volumes'], [])
  t.equal((await app.call('DELETE', '/instances/builder/volumes/cache')).status, 403)
  t.match(await app.call('POST', '/instances/builder/fork', { name: 'copy', from_running: true }), { status: 403, body: { code: 'Forbidden' } })
  await t.rejects(app.workers.create(worker('second', 'cache')), { code: 'volume_in_use' })
  await t.rejects(app.workers.create(worker('third', callers)), { code: 'not_found' }, 'what belongs to callers is none of its')
  await t.rejects(app.volumes.remove('cache', 'builds'), { code: 'conflict' })
  await app.workers.remove(id)
  await app.volumes.remove('cache', 'builds')
  t.same(await app.files(), ['disks', 'disks/data.img', ...EMPTY.slice(1)])
})

t.test('it is there after a restart, and attached to a worker that goes on', async (t) => {
  const before = await start(t)
  await before.volumes.create(owned('cache'))
  await before.volumes.create(owned('idle'))
  await before.workers.create(worker('builder', 'cache'))
  await before.waitFor('builder', 'Running')
  const { host, dataDir } = before
  await before.app.stop()
  const after = await start(t, { host, dataDir })
  t.same([...await after.volumes.ownedBy('builds')].sort(), ['cache', 'idle'])
  await t.rejects(after.volumes.remove('cache', 'builds'), { code: 'conflict' })
  t.equal((await after.call('GET', '/volumes')).text, '[]')
  await after.workers.remove('builder')
  await after.volumes.remove('cache', 'builds')
  t.same(await after.volumes.ownedBy('builds'), ['idle'])
})

t.test('one whose making or removal was cut off is gone at the next start', async (t) => {
  const before = await start(t)
  await before.volumes.create(owned('half'))
  await before.volumes.create(owned('going'))
  await before.app.stop()
  const database = await openDatabase(before.dataDir)
  await database('volumes_volumes').where({ id: 'half' }).update({ status: 'creating' })
  await database('volumes_volumes').where({ id: 'going' }).update({ status: 'deleting' })
  await database.destroy()
  const after = await start(t, { dataDir: before.dataDir })
  t.same(await after.volumes.ownedBy('builds'), [])
  t.same(await after.files(), EMPTY)
  await t.rejects(access(join(after.dataDir, 'volumes/disks/half.img')))
})
