// Instances and devices, on a scripted host with a tree like sysfs: who has which device, and which driver has it, after each operation and each failure.
import { chmod, chown, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startApp, type StartOptions } from '../instances/app.ts'
import type { FakeHost } from './fixture.ts'
import { startWithDevices, TREE, type DevicesApp } from './app.ts'

const GPU = '0000:01:00.0'
const SOUND = '0000:01:00.1'
const CARD = '0000:02:00.0'

/** With the graphics card and a network card registered. */
async function withCards (t: Test, options: StartOptions = {}, host?: FakeHost): Promise<DevicesApp & { readonly gpu: string, readonly card: string }> {
  const app = await startWithDevices(t, host ?? TREE, options)
  return { ...app, gpu: await app.register(GPU, 'gpu'), card: await app.register(CARD, 'card') }
}

const drivers = async ({ devices }: DevicesApp): Promise<readonly (string | undefined)[]> => await Promise.all([GPU, SOUND, CARD].map(async (address) => await devices.driver(address)))
const NATIVE = ['nvidia', 'snd_hda_intel', 'e1000e']
const isRoot = process.getuid?.() === 0
const owner = async ({ devices }: DevicesApp, group: number): Promise<number> => (await stat(join(devices.nodes, String(group)))).uid

t.test('an instance has its devices, by id and by name, and gives them back when it is deleted', async (t) => {
  const app = await withCards(t)
  const { call, devices, host, gpu } = app
  const id = await app.make('web', { devices: [gpu, 'card'] })
  await app.waitFor('web', 'Running')
  const sysfs = join(devices.folder, 'sys/bus/pci/devices')
  t.same(host.vm.spec.devices, [{ sysfs: join(sysfs, GPU) }, { sysfs: join(sysfs, CARD) }])
  t.equal(host.vm.spec.memory, undefined, 'no memory file')
  t.same(await drivers(app), ['vfio-pci', 'vfio-pci', 'vfio-pci'], 'with all functions of the card')
  for (const name of ['gpu', 'card']) t.match(await app.device(name), { attached_to: id, bound_to_vfio: true })
  t.match(await call('DELETE', '/devices/gpu'), { status: 409, body: { code: 'in_use', message: new RegExp(id) }, headers: { 'x-should-retry': 'false' } })
  if (isRoot) {
    t.equal(await owner(app, 1), host.vm.spec.identity?.uid)
    t.equal((await stat(join(devices.nodes, 'vfio'))).mode & 0o777, 0o666)
  }
  t.equal((await call('DELETE', '/instances/web')).status, 204)
  t.same(await drivers(app), NATIVE)
  for (const name of ['gpu', 'card']) t.match(await app.device(name), { attached_to: null, bound_to_vfio: false })
  t.equal((await call('DELETE', '/devices/gpu')).status, 204)
})

t.test('a device stays its instance\'s while that is stopped, out of reach of its user', async (t) => {
  const app = await withCards(t)
  const { call } = app
  const id = await app.make('web', { devices: ['card'] })
  await app.waitFor('web', 'Running')
  await call('POST', '/instances/web/stop')
  t.match(await app.device('card'), { attached_to: id, bound_to_vfio: true })
  if (isRoot) t.equal(await owner(app, 2), 0)
  t.equal((await call('POST', '/instances/web/start')).status, 200)
  await app.waitFor('web', 'Running')
  if (isRoot) t.equal(await owner(app, 2), app.host.vm.spec.identity?.uid)
  t.equal(app.host.vms.length, 2)
})

t.test('after a restart of the host, a start binds the device again', async (t) => {
  const app = await withCards(t)
  await app.make('web', { devices: ['card'] })
  await app.waitFor('web', 'Running')
  await app.call('POST', '/instances/web/stop')
  await app.devices.reboot()
  t.match(await app.device('card'), { bound_to_vfio: false })
  t.equal((await app.call('POST', '/instances/web/start')).status, 200)
  t.match(await app.device('card'), { bound_to_vfio: true })
  await app.call('DELETE', '/instances/web')
  t.same(await drivers(app), NATIVE)
})

t.test('after a restart of the host that numbers its groups anew, all parts of a device are one instance\'s still, and other devices are free', async (t) => {
  const [ONE, TWO] = ['0000:05:00.0', '0000:06:00.0']
  const app = await startWithDevices(t, [
    { address: GPU, ids: '10de:2235', class: '030200', group: 20, driver: 'nvidia' },
    { address: SOUND, ids: '10de:1aef', class: '040300', group: 20, driver: 'snd_hda_intel' },
    { address: CARD, ids: '8086:10d3', group: 16, driver: 'e1000e' },
    { address: ONE, ids: '8086:10d3', group: 14, driver: 'e1000e' },
    { address: TWO, ids: '8086:10d3', group: 15, driver: 'e1000e' }
  ])
  for (const [address, name] of [[GPU, 'gpu'], [SOUND, 'sound'], [CARD, 'card'], [ONE, 'c1'], [TWO, 'c2']] as const) await app.register(address, name)
  const id = await app.make('z', { devices: ['gpu'] })
  await app.make('x', { devices: ['c1'] })
  for (const name of ['z', 'x']) {
    await app.waitFor(name, 'Running')
    await app.call('POST', `/instances/${name}/stop`)
  }
  await app.devices.reboot({ [GPU]: 19, [SOUND]: 19, [CARD]: 16, [ONE]: 13, [TWO]: 14 })
  // One that has gone has no group, whose number may be another's by now.
  await app.devices.pull(ONE)
  t.equal((await app.call('POST', '/instances/z/start')).status, 200)
  t.match(await app.call('POST', '/instances', { name: 'y', image: 'test', devices: ['sound'] }), { status: 409, body: { code: 'device_in_use', message: new RegExp(`gpu, which is a part of the same device, is attached to instance ${id}`) } })
  t.match(await app.call('POST', '/instances', { name: 'y', image: 'test', devices: ['c2'] }), { status: 201 })
  t.match(await app.device('c2'), { attached_to: /./, iommu_group: 14 })
  t.match(await app.device('c1'), { iommu_group: -1 }, 'which no group has')
  t.equal((await app.call('DELETE', '/instances/y')).status, 204)
  t.same(await drivers(app), ['vfio-pci', 'vfio-pci', 'e1000e'], 'those of the other instance stay its own')
  t.equal((await app.call('DELETE', '/instances/x')).status, 204)
  t.match(await app.call('POST', '/instances', { name: 'y', image: 'test', devices: ['c1'] }), { status: 409, body: { code: 'device_not_assignable', message: /no longer on this host/ } })
  await app.call('DELETE', '/instances/z')
  t.same(await drivers(app), NATIVE)
})

t.test('a device, and a group, has one instance', async (t) => {
  const app = await withCards(t)
  await app.register(SOUND, 'sound')
  const id = await app.make('web', { devices: ['gpu'] })
  const post = async (devices: string[]) => await app.call('POST', '/instances', { name: 'other', image: 'test', devices })
  t.match(await post(['gpu']), { status: 409, body: { code: 'device_in_use', message: new RegExp(`gpu.*${id}`) } })
  t.match(await post(['card', 'sound']), { status: 409, body: { code: 'device_in_use', message: /sound.*gpu, which is a part of the same device/ } })
  t.match(await app.device('card'), { attached_to: null, bound_to_vfio: false }, 'all or none')
  t.equal((await app.call('GET', '/instances/other')).status, 404)
  t.equal((await app.call('DELETE', '/instances/web')).status, 204)
  const answers = await Promise.all(['a', 'b', 'c', 'd'].map(async (name) => await app.call('POST', '/instances', { name, image: 'test', devices: [['gpu', 'sound'][name === 'a' ? 0 : 1]] })))
  t.same(answers.map(({ status }) => status).sort(), [201, 409, 409, 409])
  const both = await app.call('POST', '/instances', { name: 'both', image: 'test', devices: ['card'] })
  t.equal(both.status, 201)
})

t.test('both functions of a card can be one instance\'s', async (t) => {
  const app = await withCards(t)
  await app.register(SOUND, 'sound')
  await app.make('web', { devices: ['gpu', 'sound'] })
  t.equal(app.host.vm.spec.devices?.length, 2)
  await app.call('DELETE', '/instances/web')
  t.same(await drivers(app), NATIVE)
})

t.test('wrong devices of a request are refused, and nothing stays behind', async (t) => {
  const app = await withCards(t)
  const wrong: readonly [fields: unknown, status: number, code: string, message: RegExp][] = [
    [{ devices: 'gpu' }, 400, 'invalid_request', /devices/],
    [{ devices: [1] }, 400, 'invalid_request', /devices/],
    [{ devices: [''] }, 400, 'invalid_request', /devices/],
    [{ devices: Array.from({ length: 65 }, () => 'gpu') }, 400, 'invalid_request', /devices/],
    [{ devices: ['gpu', 'nobody'] }, 404, 'not_found', /^devices\[1\]: device nobody/],
    [{ devices: ['gpu', app.gpu] }, 400, 'invalid_request', /^devices\[1\].*twice/],
    [{ gpu: 'x' }, 400, 'invalid_request', /gpu/],
    [{ gpu: { profile: 5 } }, 400, 'invalid_request', /gpu/],
    [{ gpu: { profile: '' } }, 400, 'invalid_request', /gpu/],
    [{ gpu: { mdev_uuid: 'x' } }, 400, 'invalid_request', /gpu/],
    [{ gpu: { profile: 'A40-2Q' } }, 400, 'invalid_request', /^gpu\.profile: no GPU of this host offers "A40-2Q"; none can be shared/]
  ]
  for (const [fields, status, code, message] of wrong) {
    t.match(await app.call('POST', '/instances', { name: 'web', image: 'test', ...Object(fields) }), { status, body: { code, message } }, JSON.stringify(fields).slice(0, 80))
  }
  t.same(JSON.parse((await app.call('GET', '/instances')).text), [])
  t.same(await drivers(app), NATIVE)
  t.equal((await app.call('POST', '/instances', { name: 'plain', image: 'test', devices: [], gpu: {} })).status, 201)
  t.notOk(app.host.vm.spec.devices)
})

t.test('without the plugin, devices and gpu are refused', async (t) => {
  const { call } = await startApp(t)
  t.match(await call('POST', '/instances', { name: 'web', image: 'test', devices: ['x'] }), { status: 400, body: { code: 'plugin_disabled', message: /^devices/ } })
  t.match(await call('POST', '/instances', { name: 'web', image: 'test', gpu: { profile: 'x' } }), { status: 400, body: { code: 'plugin_disabled', message: /^gpu/ } })
})

t.test('no memory image is made of an instance with a device', async (t) => {
  const app = await withCards(t)
  const { call, host } = app
  await app.make('web', { devices: ['card'] })
  await app.waitFor('web', 'Running')
  t.match(await call('POST', '/instances/web/standby'), { status: 409, body: { code: 'invalid_state', message: /^standby: instance web has a device/ } })
  t.match(await call('POST', '/instances/web/fork', { name: 'twin', from_running: true }), { status: 409, body: { code: 'invalid_state', message: /^fork/ } })
  t.match(await call('GET', '/instances/web'), { body: { state: 'Running' } })
  await call('POST', '/instances/web/stop')
  t.match(await call('POST', '/instances/web/fork', { name: 'twin' }), { status: 409, body: { code: 'device_in_use' } }, 'which has one instance')
  t.equal((await call('GET', '/instances/twin')).status, 404)
  t.equal(host.vms.length, 1)
})

t.test('a create that fails after the device was bound gives it back', async (t) => {
  const app = await withCards(t)
  app.host.launchError = new Error('no VM today')
  t.equal((await app.call('POST', '/instances', { name: 'web', image: 'test', devices: ['gpu'] })).status, 500)
  t.same(await drivers(app), NATIVE)
  t.match(await app.device('gpu'), { attached_to: null })
})

t.test('a start that fails leaves the device its instance\'s, out of reach', async (t) => {
  const app = await withCards(t)
  await app.make('web', { devices: ['card'] })
  await app.waitFor('web', 'Running')
  await app.call('POST', '/instances/web/stop')
  app.host.launchError = new Error('no VM today')
  t.equal((await app.call('POST', '/instances/web/start')).status, 500)
  if (isRoot) t.equal(await owner(app, 2), 0)
  t.match(await app.device('card'), { attached_to: /./, bound_to_vfio: true })
})

t.test('a driver that will not have the device makes the create fail, and all functions go back', async (t) => {
  const app = await withCards(t)
  app.devices.broken.add('vfio-pci')
  const { status, body } = await app.call('POST', '/instances', { name: 'web', image: 'test', devices: ['gpu'] })
  t.match({ status, body }, { status: 409, body: { code: 'device_bind_failed' } })
  t.same(await drivers(app), NATIVE)
  t.equal((await app.call('GET', '/instances/web')).status, 404)
})

t.test('a native driver that does not take its device back is tried again at the next start', async (t) => {
  const app = await withCards(t)
  const { dataDir, host, devices } = app
  await app.make('web', { devices: ['card'] })
  devices.onWrite = (path) => { if (path.endsWith('driver_override')) throw new Error('EIO') }
  t.equal((await app.call('DELETE', '/instances/web')).status, 204)
  t.match(await app.device('card'), { attached_to: null, bound_to_vfio: true })
  devices.onWrite = undefined
  await app.app.stop()
  const after = await startWithDevices(t, devices, { dataDir, host })
  t.same(await drivers(after), NATIVE)
  t.match(await after.device('card'), { bound_to_vfio: false })
})

t.test('a driver that never lets its device go fails what was asked in a bounded time, and other devices go on, also at the next start', { timeout: 60_000 }, async (t) => {
  const app = await withCards(t)
  const { dataDir, host, devices } = app
  await app.app.stop()
  devices.writeTimeoutMs = 2000
  const first = await startWithDevices(t, devices, { dataDir, host })
  const post = async (name: string, device: string) => await first.call('POST', '/instances', { name, image: 'test', devices: [device] })
  devices.onWrite = async (path) => { if (path.endsWith(`${GPU}/driver/unbind`)) await new Promise(() => {}) }
  const [refused, made] = await Promise.all([post('web', 'gpu'), post('other', 'card')])
  t.match(refused, { status: 409, body: { code: 'device_bind_failed', message: /has not come back from a write to .*unbind within 2 seconds/ } })
  t.match(made, { status: 201 })
  t.match(await post('web', 'gpu'), { status: 409, body: { code: 'device_bind_failed', message: /not come back from an earlier write/ } })
  t.match(await first.device('gpu'), { attached_to: null, bound_to_vfio: false })

  devices.onWrite = async (path) => { if (path.endsWith(`${CARD}/driver/unbind`)) await new Promise(() => {}) }
  t.equal((await first.call('DELETE', '/instances/other')).status, 204)
  await first.app.stop()
  const second = await startWithDevices(t, devices, { dataDir, host })
  t.match(await second.call('POST', '/instances', { name: 'web', image: 'test', devices: ['gpu'] }), { status: 201 })
  t.equal((await second.call('DELETE', '/instances/web')).status, 204)
  devices.onWrite = undefined
  await second.app.stop()
  const third = await startWithDevices(t, devices, { dataDir, host })
  t.same(await drivers(third), NATIVE)
})

t.test('a device that could not be given back and has another instance by now is left to that by the next start', async (t) => {
  const app = await withCards(t)
  const { dataDir, host, devices } = app
  await app.make('web', { devices: ['card'] })
  devices.onWrite = (path) => { if (path.endsWith('driver_override')) throw new Error('EIO') }
  t.equal((await app.call('DELETE', '/instances/web')).status, 204)
  devices.onWrite = undefined
  const id = await app.make('next', { devices: ['card'] })
  await app.waitFor('next', 'Running')
  const writes: string[] = []
  devices.onWrite = (path) => { writes.push(path) }
  await app.app.stop()
  const after = await startWithDevices(t, devices, { dataDir, host })
  t.match(await after.device('card'), { attached_to: id, bound_to_vfio: true })
  t.same(writes, [], 'nobody writes to a device that a VM has')
  t.equal((await after.call('DELETE', '/instances/next')).status, 204)
  t.same(await drivers(after), NATIVE, 'it goes back to the driver that it had before the first one')
})

t.test('a device that was at vfio-pci before stays there, and one without a driver goes back to none', async (t) => {
  const app = await startWithDevices(t, [
    { address: CARD, ids: '8086:10d3', group: 2, driver: 'vfio-pci' },
    { address: GPU, ids: '10de:2235', group: 1 }
  ])
  await app.register(CARD, 'card')
  await app.register(GPU, 'gpu')
  await app.make('web', { devices: ['card', 'gpu'] })
  await app.call('DELETE', '/instances/web')
  t.equal(await app.devices.driver(CARD), 'vfio-pci')
  t.equal(await app.devices.driver(GPU), undefined)
})

t.test('a device that is gone, or another one, is not given to anybody', async (t) => {
  const app = await withCards(t)
  await app.devices.pull(CARD)
  t.match(await app.call('POST', '/instances', { name: 'web', image: 'test', devices: ['card'] }), { status: 409, body: { code: 'device_not_assignable', message: /no longer on this host/ } })
  t.equal((await app.call('DELETE', '/devices/card')).status, 204)
})

t.test('an instance whose device is pulled out can be deleted', async (t) => {
  const app = await withCards(t)
  await app.make('web', { devices: ['card'] })
  await app.devices.pull(CARD)
  t.equal((await app.call('DELETE', '/instances/web')).status, 204)
  t.match(await app.device('card'), { attached_to: null, bound_to_vfio: false })
})

t.test('the file of a group belongs to root again also when nobody told of the end', { skip: isRoot ? false : 'needs root' }, async (t) => {
  const app = await withCards(t)
  await app.make('web', { devices: ['card'] })
  await app.waitFor('web', 'Running')
  await chown(join(app.devices.nodes, '2'), 4321, 4321)
  await chmod(join(app.devices.nodes, '2'), 0o666)
  app.host.vm.set({ status: 'gone' })
  await app.waitFor('web', 'Stopped')
  t.equal(await owner(app, 2), 0)
  await app.call('POST', '/instances/web/start')
  t.equal((await stat(join(app.devices.nodes, '2'))).mode & 0o777, 0o600)
})
