// What volumes take of a host's room, on a scripted one with the plugin resources.
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { plugin as resources } from '../../../plugins/resources/index.ts'
import { ClaimRepository } from '../../../plugins/resources/repository.ts'
import { VolumeFiles } from '../../../plugins/volumes/files.ts'
import { plugin as volumes } from '../../../plugins/volumes/index.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { eventually } from '../../helpers/eventually.ts'
import { failOnce } from '../../helpers/fail-once.ts'
import { tar } from '../../helpers/tar.ts'
import type { TestApp } from '../instances/app.ts'
import { copyOfData } from '../instances/crash.ts'
import { SMALL, startResources, TEN, viewOf } from '../resources/app.ts'
import { startWithVolumes } from './app.ts'

const create = async ({ call }: Pick<TestApp, 'call'>, name: string, fields: Record<string, unknown> = {}) =>
  await call('POST', '/instances', { name, image: 'test', overlay_size: '32MB', ...SMALL, ...fields })

t.test('volumes take their size, and their overlays that of theirs', async (t) => {
  const app = await startResources(t, { ...TEN, capacity: { ...TEN.capacity, disk: '3GB' } }, { plugins: [volumes] })
  const { call } = app
  const volume = await call('POST', '/volumes', { name: 'data', size_gb: 2 })
  t.equal(volume.status, 201)
  t.match(await call('POST', '/volumes', { name: 'more', size_gb: 2 }), { status: 409, body: { code: 'insufficient_resources', message: /disk: 2GB wanted, 1GB of 3GB free$/ } })
  t.equal(Object.keys((await call('GET', '/volumes')).body).length, 1)
  const mount = { volume_id: volume.body['id'], mount_path: '/data', readonly: true, overlay: true, overlay_size: '64MB' }
  t.match(await create(app, 'large', { volumes: [{ ...mount, overlay_size: '1GB' }] }), { status: 409 })
  t.equal((await create(app, 'web', { volumes: [mount] })).status, 201)
  t.match(await viewOf(app, ADMIN_KEY), { disk_breakdown: { volumes_bytes: 2 * 2 ** 30, overlays_bytes: 96 * 2 ** 20 }, allocations: [{ disk_bytes: 96 * 2 ** 20 }] })
  const after = await startResources(t, TEN, { host: app.host, dataDir: await copyOfData(t, app.dataDir), plugins: [volumes] })
  t.match(await viewOf(after, ADMIN_KEY), { disk_breakdown: { volumes_bytes: 2 * 2 ** 30, overlays_bytes: 96 * 2 ** 20 } })
  t.equal((await after.call('DELETE', '/instances/web')).status, 204)
  t.equal((await after.call('DELETE', '/volumes/data')).status, 204)
  t.match(await viewOf(after, ADMIN_KEY), { disk_breakdown: { volumes_bytes: 0, overlays_bytes: 0 } })
})

for (const state of ['Running', 'Stopped']) {
  t.test(`the overlay of a volume that is taken away from an instance that is ${state} takes no room any more, at once or once the database is back`, async (t) => {
    const app = await startWithVolumes(t, { plugins: [resources], sections: { resources: { config: { ...TEN, overcommit: { disk: false } } } } })
    const { call } = app
    const mounts = await Promise.all(['a', 'b'].map(async (name) => ({ volume_id: await app.makeVolume(name), mount_path: `/${name}`, readonly: true, overlay: true, overlay_size: '64MB' })))
    t.equal((await create(app, 'web', { volumes: mounts })).status, 201)
    await app.waitFor('web', 'Running')
    if (state === 'Stopped') await call('POST', '/instances/web/stop')
    const vcpus = state === 'Running' ? 1 : 0
    const taken = async (): Promise<unknown> => {
      const { cpu, disk_breakdown: { overlays_bytes: overlays }, allocations } = await viewOf(app, ADMIN_KEY)
      return [cpu.allocated, overlays / 2 ** 20, allocations[0]?.disk_bytes]
    }
    t.same(await taken(), [vcpus, 160, 160 * 2 ** 20])
    t.match(await call('DELETE', '/instances/web/volumes/a'), { status: 200 })
    t.same(await taken(), [vcpus, 96, 96 * 2 ** 20])
    failOnce(t, ClaimRepository.prototype, 'shrink', { done: false })
    t.match(await call('DELETE', '/instances/web/volumes/b'), { status: 503 })
    await eventually('it takes no room', async () => (await viewOf(app, ADMIN_KEY)).disk_breakdown.overlays_bytes === 32 * 2 ** 20, { limitMs: 30_000 })
    t.same(await taken(), [vcpus, 32, 32 * 2 ** 20])
    t.equal((await call('GET', '/volumes/b')).status, 200)
  })
}

t.test('a volume from an archive whose room cannot be fitted to it is none, and takes no room', async (t) => {
  const app = await startWithVolumes(t, { plugins: [resources], sections: { resources: { config: TEN } } })
  const make = Reflect.get(VolumeFiles.prototype, 'make')
  t.teardown(() => { VolumeFiles.prototype.make = make })
  VolumeFiles.prototype.make = async function (...args) {
    await make.apply(this, args)
    failOnce(t, ClaimRepository.prototype, 'claim', { done: true })
  }
  t.ok((await app.upload(gzipSync(tar([])), 'name=data&size_gb=4')).status >= 500)
  t.equal((await app.call('GET', '/volumes/data')).status, 404)
  await eventually('it takes no room', async () => (await viewOf(app, ADMIN_KEY)).disk_breakdown.volumes_bytes === 0, { limitMs: 30_000 })
  VolumeFiles.prototype.make = make
  t.match(await app.upload(gzipSync(tar([])), 'name=data&size_gb=4'), { status: 201, body: { size_gb: 1 } })
  t.equal((await viewOf(app, ADMIN_KEY)).disk_breakdown.volumes_bytes, 2 ** 30)
})
