// Volumes of a create: what the VM gets of them, and which are refused.
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startApp } from '../instances/app.ts'
import { startWithVolumes } from './app.ts'
import { bare, mount, overlaid, running } from './attached.ts'

t.test('a VM has the disks of its volumes, which its user alone can reach, and the guest is told', async (t) => {
  const app = await running(t, overlaid)
  const { call, host, id, dataDir } = app
  const path = join(dataDir, 'volumes/uses', id, 'data.img')
  const overlay = join(dataDir, 'instances', id, 'volumes/data.ext4')
  t.match(host.vm.spec.disks.slice(2), [{ id: 'volume-0', path, readonly: true, unit: 0 }, { id: 'overlay-0', path: overlay, readonly: false, unit: 1 }])
  t.same(host.vm.workload?.mounts, [{ path: '/data', device: 'serial:volume-0', readonly: true, overlayDevice: 'serial:overlay-0' }])
  t.match((await call('GET', '/instances/web')).body['volumes'], [{ volume_id: 'data', mount_path: '/data', readonly: true, overlay: true, overlay_size: '16MB' }])
  t.same(await app.attachments('data'), [{ instance_id: id, mount_path: '/data', readonly: true }])
  if (process.getuid?.() !== 0) return
  const { uid, gid } = host.vm.spec.identity ?? { uid: 0, gid: 0 }
  t.match(await stat(path), { uid: 0, nlink: 2 })
  t.equal((await stat(path)).mode & 0o777, 0o444)
  t.match(await stat(join(dataDir, 'volumes/uses', id)), { uid: 0, gid })
  t.equal((await stat(join(dataDir, 'volumes/uses', id))).mode & 0o777, 0o710)
  t.equal((await stat(join(dataDir, 'volumes/disks'))).mode & 0o777, 0o700)
  t.match(await stat(overlay), { uid })
})

t.test('a volume does not come over one that a running guest has mounted inside it, and does at its next start', async (t) => {
  const app = await startWithVolumes(t)
  const { call, host } = app
  for (const id of ['outer', 'inner', 'beside']) await app.makeVolume(id, { id })
  await app.make('web', { volumes: [mount('inner', { mount_path: '/data/logs' })] })
  await app.waitFor('web', 'Running')
  t.match(await call('POST', '/instances/web/volumes/outer', { mount_path: '/data' }), { status: 400, body: { code: 'invalid_request', message: /^mount_path: .*\/data\/logs/ } })
  t.same(await app.attachments('outer'), [])
  t.match(await call('POST', '/instances/web/volumes/beside', { mount_path: '/dat' }), { status: 200 }, 'a path that only begins alike')
  t.equal((await call('POST', '/instances/web/stop')).status, 200)
  t.match(await call('POST', '/instances/web/volumes/outer', { mount_path: '/data' }), { status: 200 })
  t.equal((await call('POST', '/instances/web/start')).status, 200)
  await app.waitFor('web', 'Running')
  t.same(host.vm.workload?.mounts.map(({ path }) => path).sort(), ['/dat', '/data', '/data/logs'])
})

t.test('an instance whose hypervisor has no disks that come and go gets no volume, at rest neither', async (t) => {
  const app = await bare(t)
  const { call, host } = app
  Object.assign(host.driver, { features: ['disk-io-limit'] })
  const refused = { status: 501, body: { code: 'not_supported', message: 'volumes: the hypervisor qemu cannot do that' } }
  t.match(await call('POST', '/instances/web/volumes/data', { mount_path: '/data' }), refused)
  t.equal((await call('POST', '/instances/web/stop')).status, 200)
  t.match(await call('POST', '/instances/web/volumes/data', { mount_path: '/data' }), refused)
  t.match(await call('POST', '/instances', { name: 'other', image: 'test', overlay_size: '32MB', volumes: [mount('data')] }), refused)
  t.same(await app.attachments('data'), [])
  t.equal((await call('POST', '/instances/web/start')).status, 200)
})

t.test('a writer\'s disk is its own, and nobody else\'s afterwards', async (t) => {
  const app = await running(t)
  const { host, id, dataDir } = app
  const path = join(dataDir, 'volumes/uses', id, 'data.img')
  t.equal((await stat(path)).mode & 0o777, 0o600)
  if (process.getuid?.() === 0) t.match(await stat(path), { uid: host.vm.spec.identity?.uid })
  t.equal((await app.call('DELETE', '/instances/web')).status, 204)
  t.same(await app.files(), ['disks', 'disks/data.img', 'unpacking', 'uses'])
  t.same(await app.attachments('data'), [])
  const reader = await app.make('reader', { volumes: [mount('data', { readonly: true })] })
  if (process.getuid?.() === 0) t.match(await stat(join(dataDir, 'volumes/uses', reader, 'data.img')), { uid: 0 })
})

t.test('of two creates at once that want to write a volume exactly one wins', async (t) => {
  const app = await startWithVolumes(t)
  await app.makeVolume('data', { id: 'data' })
  const answers = await Promise.all(['a', 'b', 'c', 'd'].map(async (name) => await app.call('POST', '/instances', { name, image: 'test', overlay_size: '32MB', volumes: [mount('data')] })))
  t.same(answers.map(({ status }) => status).sort(), [201, 409, 409, 409])
  t.same(JSON.parse((await app.call('GET', '/instances')).text).length, 1)
})

t.test('many may read one volume', async (t) => {
  const app = await startWithVolumes(t)
  await app.makeVolume('data', { id: 'data' })
  const answers = await Promise.all(['a', 'b', 'c'].map(async (name) => await app.call('POST', '/instances', { name, image: 'test', overlay_size: '32MB', volumes: [mount('data', { readonly: true })] })))
  t.same(answers.map(({ status }) => status), [201, 201, 201])
  t.equal((await app.attachments('data') as unknown[]).length, 3)
})

t.test('a create that fails later gives its volumes back', async (t) => {
  const app = await startWithVolumes(t)
  await app.makeVolume('data', { id: 'data' })
  for (const step of ['launch', 'launched'] as const) {
    app.host.failures.set(step, new Error('it failed'))
    t.equal((await app.call('POST', '/instances', { name: 'new', image: 'test', overlay_size: '32MB', volumes: [mount('data', overlaid)] })).status, 500)
    app.host.failures.clear()
    t.same(await app.attachments('data'), [])
    t.same(await readdir(join(app.dataDir, 'volumes/uses')), [])
  }
})

t.test('without the plugin volumes are refused', async (t) => {
  const app = await startApp(t)
  t.match(await app.call('POST', '/instances', { name: 'new', image: 'test', volumes: [mount('data')] }), { status: 400, body: { code: 'plugin_disabled', message: /volumes needs the plugin volumes/ } })
  await app.make('web')
  t.match(await app.call('POST', '/instances/web/volumes/data', { mount_path: '/data' }), { status: 400, body: { code: 'plugin_disabled' } })
  t.equal((await app.call('GET', '/volumes')).status, 404)
})
