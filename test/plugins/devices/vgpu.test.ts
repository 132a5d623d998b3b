// Shares of GPUs: which one is chosen, how long it lives, and what is known of them.
import t from 'tap'
import { Type } from 'typebox'
import type { Gpus } from '../../../core/library/gpus.ts'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import { until } from '../instances/crash.ts'
import { startWithDevices } from './app.ts'
import type { FakeDevice } from './fixture.ts'

const TYPES = (count: number): FakeDevice['mdevs'] => ({
  'nvidia-556': { name: 'NVIDIA A40-2Q', count, description: 'num_heads=4, frl_config=60, framebuffer=2048M, max_resolution=7680x4320, max_instance=24' },
  'nvidia-560': { name: 'NVIDIA A40-8Q', count: 1, description: 'num_heads=4, framebuffer=8192M' },
  odd: { count: 0 }
})
const GPUS: readonly FakeDevice[] = [
  { address: '0000:81:00.4', ids: '10de:2235', class: '030200', group: 11, driver: 'nvidia', physfn: '0000:81:00.0', mdevs: TYPES(1) },
  { address: '0000:82:00.4', ids: '10de:2235', class: '030200', group: 12, driver: 'nvidia', physfn: '0000:82:00.0', mdevs: TYPES(2) }
]

t.test('an instance gets a share of the GPU with the most room, and its delete removes it', async (t) => {
  const app = await startWithDevices(t, GPUS)
  const { call, devices, host } = app
  await app.make('web', { gpu: { profile: 'A40-2Q' } })
  const { gpu }: { gpu?: { profile: string, mdev_uuid: string } } = (await call('GET', '/instances/web')).body
  t.match(gpu, { profile: 'A40-2Q', mdev_uuid: /^[0-9a-f-]{36}$/ })
  t.same(await devices.mdevs(), [gpu?.mdev_uuid])
  t.match(host.vm.spec.devices, [{ sysfs: new RegExp(`bus/mdev/devices/${gpu?.mdev_uuid ?? ''}$`) }])
  t.equal(await devices.sysfs.read('bus/pci/devices/0000:82:00.4/mdev_supported_types/nvidia-556/available_instances'), '1')
  await app.waitFor('web', 'Running')
  t.match(await call('POST', '/instances/web/standby'), { status: 409, body: { code: 'invalid_state', message: /vGPU/ } })
  await call('POST', '/instances/web/stop')
  t.same(await devices.mdevs(), [gpu?.mdev_uuid], 'it stays')
  await devices.reboot()
  t.equal((await call('POST', '/instances/web/start')).status, 200)
  t.same(await devices.mdevs(), [gpu?.mdev_uuid], 'made again')
  await call('DELETE', '/instances/web')
  t.same(await devices.mdevs(), [])
})

t.test('shares of stopped instances are their own after a restart of the host, each of the GPU that it was of', async (t) => {
  const before = await startWithDevices(t, GPUS)
  const { dataDir, devices, host } = before
  const names = ['one', 'two', 'three']
  for (const name of names) {
    await before.make(name, { gpu: { profile: 'A40-2Q' } })
    await before.waitFor(name, 'Running')
    await before.call('POST', `/instances/${name}/stop`)
  }
  const shares = async () => await Promise.all((await devices.mdevs()).map(async (uuid) => [uuid, await devices.sysfs.read(`bus/mdev/devices/${uuid}/type`)]))
  const had = await shares()
  t.equal(had.length, 3)
  await before.app.stop()
  await devices.reboot()
  const app = await startWithDevices(t, devices, { dataDir, host })
  t.same(await shares(), had)
  t.match(await app.call('POST', '/instances', { name: 'more', image: 'test', gpu: { profile: 'A40-2Q' } }), { status: 409, body: { code: 'insufficient_resources' } })
  for (const name of names) t.equal((await app.call('POST', `/instances/${name}/start`)).status, 200)
})

t.test('a share that cannot be made again at the start keeps nothing from it, and is made once it can be', async (t) => {
  let known: Gpus | undefined
  const peek = definePlugin({
    manifest: { id: 'peek', provides: [], requires: ['gpus'], config: Type.Object({}, { additionalProperties: false }) },
    create: ({ gpus }) => ({ async start () { known = gpus } })
  })
  const before = await startWithDevices(t, GPUS)
  const { dataDir, devices, host } = before
  await before.make('web', { gpu: { profile: 'A40-2Q' } })
  await before.waitFor('web', 'Running')
  await before.call('POST', '/instances/web/stop')
  const had = await devices.mdevs()
  await before.app.stop()
  await devices.reboot()
  devices.onWrite = (path) => { if (path.endsWith('/create')) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' }) }
  const lines: Record<string, unknown>[] = []
  const app = await startWithDevices(t, devices, { dataDir, host, lines, plugins: [peek] })
  t.equal(lines.filter(({ msg }) => /could not be made again/.test(String(msg))).length, 1)
  t.match(await known?.gpus(), { totalSlots: 3, usedSlots: 0 }, 'it is among those that are free')
  t.match(await app.call('POST', '/instances/web/start'), { status: 409, body: { code: 'insufficient_resources' } })
  devices.onWrite = undefined
  await app.app.stop()
  await startWithDevices(t, devices, { dataDir, host, plugins: [peek] })
  t.same(await devices.mdevs(), had, 'also after a start that failed')
  t.match(await known?.gpus(), { totalSlots: 3, usedSlots: 1 })
})

t.test('profiles are known by each of their names; when none is left, nothing stays behind', async (t) => {
  const app = await startWithDevices(t, GPUS)
  for (const [index, profile] of ['NVIDIA A40-8Q', 'nvidia-560'].entries()) await app.make(`a${index}`, { gpu: { profile } })
  const post = async (profile: string) => await app.call('POST', '/instances', { name: 'more', image: 'test', gpu: { profile } })
  t.match(await post('A40-8Q'), { status: 409, body: { code: 'insufficient_resources', message: /^gpu\.profile/ } })
  t.match(await post('A40-1Q'), { status: 400, body: { code: 'invalid_request', message: /there are NVIDIA A40-2Q, NVIDIA A40-8Q, odd/ } })
  t.match(await post('odd'), { status: 409, body: { code: 'insufficient_resources' } })
  t.equal((await app.devices.mdevs()).length, 2)
  t.equal(JSON.parse((await app.call('GET', '/instances')).text).length, 2)
})

t.test('a GPU that never gives its share fails the create, and a share that it gives later goes with the next start', async (t) => {
  const before = await startWithDevices(t, GPUS)
  const { dataDir, devices, host } = before
  await before.app.stop()
  devices.writeTimeoutMs = 300
  const app = await startWithDevices(t, devices, { dataDir, host })
  let answer = (): void => {}
  const asked = new Promise<void>((resolve) => { answer = resolve })
  devices.onWrite = async (path) => { if (path.endsWith('/create')) await asked }
  t.match(await app.call('POST', '/instances', { name: 'web', image: 'test', gpu: { profile: 'A40-2Q' } }), { status: 409, body: { code: 'device_bind_failed', message: /^PCI device 0000:82:00\.4 could not give a share of itself: .*not come back/ } })
  t.equal((await app.call('GET', '/instances/web')).status, 404)
  answer()
  await until(async () => (await devices.mdevs()).length === 1)
  devices.onWrite = undefined
  devices.writeTimeoutMs = 30_000
  await app.app.stop()
  const after = await startWithDevices(t, devices, { dataDir, host })
  t.same(await devices.mdevs(), [])
  await after.make('web', { gpu: { profile: 'A40-2Q' } })
})

t.test('a fork of a stopped instance has a share of its own', async (t) => {
  const app = await startWithDevices(t, GPUS)
  await app.make('web', { gpu: { profile: 'A40-2Q' } })
  await app.waitFor('web', 'Running')
  await app.call('POST', '/instances/web/stop')
  t.equal((await app.call('POST', '/instances/web/fork', { name: 'twin' })).status, 201)
  const uuids = await Promise.all(['web', 'twin'].map(async (name) => Object((await app.call('GET', `/instances/${name}`)).body['gpu']).mdev_uuid))
  t.same(await app.devices.mdevs(), [...uuids].sort())
  t.not(uuids[0], uuids[1])
})

t.test('a server that was killed before it stored its instance leaves no share behind; another\'s stays', async (t) => {
  const app = await startWithDevices(t, GPUS)
  const { dataDir, devices, host } = app
  await devices.sysfs.write('bus/pci/devices/0000:81:00.4/mdev_supported_types/nvidia-556/create', '11111111-2222-3333-4444-555555555555')
  await app.make('web', { gpu: { profile: 'A40-8Q' } })
  t.equal((await devices.mdevs()).length, 2)
  await app.app.stop()
  const { openDatabase } = await import('../instances/database.ts')
  const database = await openDatabase(dataDir)
  await database('instances_instances').delete()
  await database.destroy()
  await startWithDevices(t, devices, { dataDir, host })
  t.same(await devices.mdevs(), ['11111111-2222-3333-4444-555555555555'])
})
