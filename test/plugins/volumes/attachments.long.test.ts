// Instances and volumes, on a scripted host with real disks: who has which volume after each operation, after each failure, and after each crash.
import { lstat, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openDatabase } from '../instances/database.ts'
import { copyOfData, crashAt, until } from '../instances/crash.ts'
import type { ImagingStep } from '../instances/scripted.ts'
import { startWithVolumes, type VolumesApp } from './app.ts'
import { bare, mount, overlaid, running } from './attached.ts'

t.test('a volume is attached in every state of its instance, and only a delete gives it back', async (t) => {
  const app = await running(t)
  const { call, id } = app
  const has = [{ instance_id: id, mount_path: '/data', readonly: false }]
  for (const path of ['stop', 'start', 'standby', 'restore', 'standby']) {
    t.equal((await call('POST', `/instances/web/${path}`)).status, 200, path)
    t.same(await app.attachments('data'), has, path)
    t.match(await call('DELETE', '/volumes/data'), { status: 409, body: { code: 'conflict', message: new RegExp(id) } })
    if (path === 'start') await app.waitFor('web', 'Running')
  }
  await call('DELETE', '/instances/web')
  t.same(await app.attachments('data'), [])
  t.equal((await call('DELETE', '/volumes/data')).status, 204)
})

const wrong: readonly [volumes: unknown, status: number, code: string, message: RegExp][] = [
  [[mount('nobody')], 404, 'not_found', /volume nobody/],
  [[mount('twins')], 409, 'ambiguous', /twins/],
  [[mount('data'), mount('named', { mount_path: '/b' })], 400, 'invalid_request', /volumes\[1\].volume_id: the same volume/],
  [[mount('busy', { readonly: true })], 409, 'volume_in_use', /may write it/],
  [[mount('busy')], 409, 'volume_in_use', /may write it/],
  [[mount('read')], 409, 'volume_in_use', /reads it/],
  [[mount('data'), mount('busy', { mount_path: '/b' })], 409, 'volume_in_use', /busy/],
  [[{ volume_id: 'data' }], 400, 'invalid_request', /mount_path/],
  [[{ mount_path: '/data' }], 400, 'invalid_request', /volume_id/],
  [[mount('data', { readonly: 'yes' })], 400, 'invalid_request', /readonly/],
  [[mount('data', { overlay: true, overlay_size: '1GB' })], 400, 'invalid_request', /readonly/],
  [[mount('data', { mount_path: '/usr/lib' })], 400, 'invalid_request', /system folder/],
  [[mount('data', { other: 1 })], 400, 'invalid_request', /other/],
  ['data', 400, 'invalid_request', /volumes/]
]

t.test('every wrong volume of a create is refused, and nothing is made', async (t) => {
  const app = await startWithVolumes(t)
  for (const id of ['data', 'busy', 'read']) await app.makeVolume(id === 'data' ? 'named' : id, { id })
  for (const id of ['t1', 't2']) await app.makeVolume(id, { id: `twins-${id}` })
  await app.make('writer', { volumes: [mount('busy')] })
  await app.make('reader', { volumes: [mount('read', { readonly: true })] })
  for (const [volumes, status, code, message] of wrong) {
    t.match(await app.call('POST', '/instances', { name: 'new', image: 'test', overlay_size: '32MB', volumes }), { status, body: { code, message } }, JSON.stringify(volumes))
    t.equal((await app.call('GET', '/instances/new')).status, 404)
  }
  t.same(await app.attachments('data'), [])
  for (const id of ['busy', 'read']) t.equal((await app.attachments(id) as unknown[]).length, 1, 'whoever has it keeps it')
  t.equal((await readdir(join(app.dataDir, 'instances'))).length, 2)
  t.same(await readdir(join(app.dataDir, 'volumes/uses')).then((names) => names.length), 2)
})

t.test('a volume comes to an instance that runs, and goes', async (t) => {
  const app = await bare(t)
  const { call, host, id, dataDir } = app
  const path = join(dataDir, 'volumes/uses', id, 'data.img')
  t.match(await call('POST', '/instances/web/volumes/data', { mount_path: '/data/' }), { status: 200, body: { volumes: [{ volume_id: 'data', mount_path: '/data', readonly: false }] } })
  t.equal(host.vm.disks.get('volume-0'), path)
  t.same([...host.vm.mounts.values()], [{ path: '/data', device: 'serial:volume-0', readonly: false }])
  t.match(await call('POST', '/instances/web/volumes/data', { mount_path: '/other' }), { status: 409, body: { code: 'volume_in_use', message: /this instance already/ } })
  await app.makeVolume('second', { id: 'second' })
  t.match(await call('POST', '/instances/web/volumes/second', { mount_path: '/data' }), { status: 400, body: { code: 'invalid_request', message: /used by another volume/ } })
  t.match(await call('POST', '/instances/web/volumes/second', { mount_path: '/second', readonly: true }), { status: 200, body: { volumes: [{}, { volume_id: 'second', readonly: true }] } })
  t.match(await call('DELETE', '/instances/web/volumes/data'), { status: 200, body: { volumes: [{ volume_id: 'second' }] } })
  t.same([...host.vm.mounts.keys()], ['serial:volume-1'])
  t.notOk(host.vm.disks.has('volume-0'))
  t.same(await app.attachments('data'), [])
  await t.rejects(lstat(path))
  t.match(await call('DELETE', '/instances/web/volumes/data'), { status: 404, body: { code: 'not_found' } })
  t.match(await call('POST', '/instances/web/volumes/data', { mount_path: '/third' }), { status: 200 })
  t.equal(host.vm.disks.get('volume-0'), path, 'in the place that was free')
})

t.test('a stopped instance gets it at its next start', async (t) => {
  const app = await bare(t)
  const { call, host } = app
  await call('POST', '/instances/web/stop')
  t.match(await call('POST', '/instances/web/volumes/data', { mount_path: '/data' }), { status: 200, body: { state: 'Stopped', volumes: [{ volume_id: 'data' }] } })
  await call('POST', '/instances/web/start')
  await app.waitFor('web', 'Running')
  t.match(host.vm.workload?.mounts, [{ path: '/data' }])
  await call('POST', '/instances/web/stop')
  t.match(await call('DELETE', '/instances/web/volumes/data'), { status: 200, body: { volumes: [] } })
  t.same(await app.attachments('data'), [])
})

t.test('what is busy in the guest stays attached', async (t) => {
  const app = await running(t)
  const { call, host } = app
  host.vm.busy.add('serial:volume-0')
  t.match(await call('DELETE', '/instances/web/volumes/data'), { status: 409, body: { code: 'volume_busy', message: /data stays attached: \/data is in use/ }, headers: { 'x-should-retry': 'false' } })
  t.match((await call('GET', '/instances/web')).body, { volumes: [{ volume_id: 'data' }] })
  t.ok(host.vm.disks.has('volume-0'))
  host.vm.busy.clear()
  t.equal((await call('DELETE', '/instances/web/volumes/data')).status, 200)
})

const asked: readonly [body: unknown, status: number, code: string, message: RegExp][] = [
  [undefined, 400, 'invalid_request', /body/],
  [{}, 400, 'invalid_request', /mount_path/],
  [{ mount_path: 'data' }, 400, 'invalid_request', /absolute/],
  [{ mount_path: '/' }, 400, 'invalid_request', /system folder/],
  [{ mount_path: '/etc' }, 400, 'invalid_request', /system folder/],
  [{ mount_path: '/a/../b' }, 400, 'invalid_request', /plain path/],
  [{ mount_path: '/a\u0000' }, 400, 'invalid_request', /mount_path/],
  [{ mount_path: 7 }, 400, 'invalid_request', /mount_path/],
  [{ mount_path: '/a', readonly: 1 }, 400, 'invalid_request', /readonly/],
  [{ mount_path: '/a', overlay: true }, 400, 'invalid_request', /overlay/]
]

t.test('every wrong request to attach or detach is refused', async (t) => {
  const app = await bare(t)
  const { call } = app
  for (const [body, status, code, message] of asked) t.match(await call('POST', '/instances/web/volumes/data', body), { status, body: { code, message } }, JSON.stringify(body) ?? 'nothing')
  t.match(await call('POST', '/instances/nobody/volumes/data', { mount_path: '/a' }), { status: 404, body: { code: 'not_found', message: /instance nobody/ } })
  t.match(await call('POST', '/instances/web/volumes/nobody', { mount_path: '/a' }), { status: 404, body: { code: 'not_found', message: /volume nobody/ } })
  t.match(await call('DELETE', '/instances/web/volumes/nobody'), { status: 404, body: { code: 'not_found' } })
  t.match(await call('DELETE', '/instances/web/volumes/data'), { status: 404, body: { code: 'not_found' } })
  await call('POST', '/instances/web/standby')
  t.match(await call('POST', '/instances/web/volumes/data', { mount_path: '/a' }), { status: 409, body: { code: 'invalid_state', message: /Standby/ } })
  t.match(await call('DELETE', '/instances/web/volumes/data'), { status: 409, body: { code: 'invalid_state' } })
  t.same(await app.attachments('data'), [])
})

t.test('a VM takes so many disks and no more', async (t) => {
  const app = await bare(t)
  for (let index = 0; index < 24; index++) {
    await app.makeVolume(`v${index}`, { id: `v${index}` })
    t.equal((await app.call('POST', `/instances/web/volumes/v${index}`, { mount_path: `/v${index}`, readonly: true })).status, index < 23 ? 200 : 400)
  }
})

for (const step of ['plug-disk', 'disk-plugged', 'mount', 'mounted'] as const) {
  t.test(`an attachment that fails at "${step}" leaves nothing`, async (t) => {
    const app = await bare(t)
    app.host.failures.set(step, new Error('it failed'))
    t.ok((await app.call('POST', '/instances/web/volumes/data', { mount_path: '/data' })).status >= 400)
    app.host.failures.clear()
    t.same((await app.call('GET', '/instances/web')).body['volumes'], [])
    t.same([app.host.vm.mounts.size, app.host.vm.disks.has('volume-0')], [0, false])
    t.same(await app.attachments('data'), [])
    t.equal((await app.call('POST', '/instances/web/volumes/data', { mount_path: '/data' })).status, 200)
  })
}

for (const step of ['unmount', 'unmounted', 'unplug-disk', 'disk-unplugged'] as const) {
  t.test(`a detachment that fails at "${step}" leaves it attached, and works the next time`, async (t) => {
    const app = await running(t)
    app.host.failures.set(step, new Error('it failed'))
    t.ok((await app.call('DELETE', '/instances/web/volumes/data')).status >= 400)
    app.host.failures.clear()
    t.match((await app.call('GET', '/instances/web')).body, { volumes: [{ volume_id: 'data' }] })
    t.equal((await app.attachments('data') as unknown[]).length, 1)
    t.equal((await app.call('DELETE', '/instances/web/volumes/data')).status, 200)
    t.same(await app.attachments('data'), [])
  })
}

/** The volume is there wholly, or not at all, for the instance, the guest, the VMM and the database alike. */
async function consistent (t: Test, app: VolumesApp, step: string): Promise<boolean> {
  const { host } = app
  const { body } = await app.call('GET', '/instances/web')
  const listed = Array.isArray(body['volumes']) && body['volumes'].length === 1
  t.equal((await app.attachments('data') as unknown[]).length, listed ? 1 : 0, `${step}: attachments`)
  t.equal(host.vm.mounts.has('serial:volume-0'), listed, `${step}: guest`)
  t.equal(host.vm.disks.has('volume-0'), listed, `${step}: VMM`)
  t.equal((await app.files()).includes(`uses/${String(body['id'])}/data.img`), listed, `${step}: file`)
  return listed
}

async function settled (app: VolumesApp): Promise<void> {
  // It goes on by itself, under the instance's lock: a call that waits for the lock waits for it.
  await until(async () => {
    const { status } = await app.call('POST', '/instances/web/volumes/nobody', { mount_path: '/x' })
    return status === 404
  })
}

const attaching: readonly ImagingStep[] = ['plug-disk', 'disk-plugged', 'mount', 'mounted']
for (const step of attaching) {
  for (const isUsed of [false, true]) {
    t.test(`an attachment that was cut off at "${step}" ${isUsed ? 'stays when the guest uses it' : 'is taken back'}`, async (t) => {
      const before = await bare(t)
      const after = await crashAt(t, before, step, async () => {
        if (isUsed) before.host.vm.busy.add('serial:volume-0')
        return await before.call('POST', '/instances/web/volumes/data', { mount_path: '/data' })
      }, startWithVolumes)
      await settled(after)
      const stays = isUsed && step === 'mounted'
      if (!isUsed || stays) t.equal(await consistent(t, after, step), stays)
      before.host.vm.busy.clear()
      if ((await after.attachments('data') as unknown[]).length === 1) t.equal((await after.call('DELETE', '/instances/web/volumes/data')).status, 200)
      t.equal(await consistent(t, after, step), false)
      t.equal((await after.call('POST', '/instances/web/volumes/data', { mount_path: '/data' })).status, 200)
      t.equal(await consistent(t, after, step), true)
    })
  }
}

for (const step of ['unmount', 'unmounted', 'unplug-disk', 'disk-unplugged'] as const) {
  t.test(`a detachment that was cut off at "${step}" is finished`, async (t) => {
    const before = await running(t)
    const after = await crashAt(t, before, step, async () => await before.call('DELETE', '/instances/web/volumes/data'), startWithVolumes)
    await settled(after)
    t.equal(await consistent(t, after, step), false)
    t.equal((await after.call('POST', '/instances/web/volumes/data', { mount_path: '/data' })).status, 200)
  })
}

t.test('an attachment that was cut off is gone when its VM has ended before the next server', async (t) => {
  const before = await bare(t)
  const after = await crashAt(t, before, 'mounted', async () => {
    const call = before.call('POST', '/instances/web/volumes/data', { mount_path: '/data' })
    return await call
  }, async (t, options) => {
    await before.host.vm.exit()
    return await startWithVolumes(t, options)
  })
  await after.waitFor('web', 'Stopped')
  t.same((await after.call('GET', '/instances/web')).body['volumes'], [])
  await until(async () => (await after.attachments('data') as unknown[]).length === 0)
})

const creates: readonly ImagingStep[] = ['launch', 'launched']
for (const step of creates) {
  t.test(`a create that was cut off at "${step}" gives its volumes back`, async (t) => {
    const before = await startWithVolumes(t)
    await before.makeVolume('data', { id: 'data' })
    const after = await crashAt(t, before, step, async () => await before.call('POST', '/instances', { name: 'new', image: 'test', overlay_size: '32MB', volumes: [mount('data', overlaid)] }), startWithVolumes)
    t.same(await after.attachments('data'), [])
    t.same(await after.files(), ['disks', 'disks/data.img', 'unpacking', 'uses'])
    t.same(await readdir(join(after.dataDir, 'instances')), [])
  })
}

t.test('an attachment that no instance knows is given back at the start', async (t) => {
  const before = await running(t)
  const dataDir = await copyOfData(t, before.dataDir)
  const database = await openDatabase(dataDir)
  const [row]: Record<string, unknown>[] = await database('volumes_attachments')
  await before.makeVolume('x')
  await database('volumes_volumes').insert({ ...(await database('volumes_volumes').first()), id: 'second', name_key: null })
  await database('volumes_attachments').insert([{ ...row, volume_id: 'second' }, { ...row, volume_id: 'data', instance_id: 'nobody' }])
  await database.destroy()
  const after = await startWithVolumes(t, { host: before.host, dataDir })
  t.same(await after.attachments('second'), [])
  t.match(await after.attachments('data'), [{ instance_id: before.id }])
})

t.test('a fork reads what its source reads, with a copy of what was written', async (t) => {
  const app = await running(t, overlaid)
  const { call, host, dataDir, id } = app
  for (const target of ['Running', 'Standby', 'Stopped'] as const) {
    const name = `fork-${target.toLowerCase()}`
    const { status, body } = await call('POST', '/instances/web/fork', { name, from_running: true, target_state: target })
    t.match({ status, volumes: body['volumes'] }, { status: 201, volumes: [{ volume_id: 'data', overlay: true }] })
    const fork = String(body['id'])
    const overlay = await stat(join(dataDir, 'instances', fork, 'volumes/data.ext4'))
    t.equal(overlay.size, (await stat(join(dataDir, 'instances', id, 'volumes/data.ext4'))).size)
    if (target === 'Running') t.match(host.vm.spec.disks.slice(2), [{ path: join(dataDir, 'volumes/uses', fork, 'data.img') }, { path: join(dataDir, 'instances', fork, 'volumes/data.ext4') }])
  }
  t.equal((await app.attachments('data') as unknown[]).length, 4)
  for (const name of ['fork-running', 'fork-standby', 'fork-stopped', 'web']) await call('DELETE', `/instances/${name}`)
  t.same(await app.attachments('data'), [])
})

t.test('nothing becomes a second writer', async (t) => {
  const app = await running(t)
  const { call } = app
  const refused = { status: 501, body: { code: 'not_supported', message: /volume data \(at \/data\)/ } }
  t.match(await call('POST', '/instances/web/fork', { name: 'twin', from_running: true }), refused)
  await call('POST', '/instances/web/standby')
  t.match(await call('POST', '/instances/web/fork', { name: 'twin' }), refused)
  await call('POST', '/instances/web/restore')
  await call('POST', '/instances/web/stop')
  t.match(await call('POST', '/instances/web/fork', { name: 'twin' }), refused)
  t.same(await app.attachments('data'), [{ instance_id: app.id, mount_path: '/data', readonly: false }])
})
