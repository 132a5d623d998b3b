// Room on a host, on a scripted one: who gets some, who is told what is short, and what is given back when.
import t from 'tap'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { copyOfData, crashAt, until } from '../instances/crash.ts'
import { ScriptedHost, type ImagingStep } from '../instances/scripted.ts'
import { alive } from '../instances/templates-app.ts'
import { create, running, SMALL, startResources, startWithSpares, taken, TEN, viewOf } from './app.ts'

t.test('of 50 creates at once exactly as many are admitted as there is room for', async (t) => {
  const app = await startResources(t)
  const answers = await Promise.all(Array.from({ length: 50 }, async (_, at) => await create(app, `n${at}`)))
  t.same(answers.map(({ status }) => status).sort(), [...Array.from({ length: 10 }, () => 201), ...Array.from({ length: 40 }, () => 409)])
  for (const { body, headers } of answers.filter(({ status }) => status === 409)) {
    t.match(body, { code: 'insufficient_resources', message: 'this host has no room for that: cpu: 1 vCPUs wanted, 0 vCPUs of 10 vCPUs free' })
    t.match(headers, { 'x-should-retry': 'false' })
  }
  t.same(await taken(app), running(10))
  const { body } = await app.call('GET', '/instances')
  t.equal(Object.keys(body).length, 10, 'nothing is left of those that were refused')
  t.equal(app.host.held.size, 10)
})

t.test('with spare VMs it is the same, and one that was refused leaves its spare VM as it was', async (t) => {
  const app = await startWithSpares(t, { ...TEN, capacity: { ...TEN.capacity, cpu: 2 } })
  await app.warmUp(SMALL)
  t.same(await taken(app), running(1), 'a spare VM takes no room')
  t.match(await create(app, 'second', { vcpus: 2 }), { status: 409 })
  t.equal((await create(app, 'second')).status, 201)
  t.equal(await app.wayOf(String((await app.call('GET', '/instances/second')).body['id'])), 'from a spare VM')
  t.same(await taken(app), running(2))
  await until(async () => await app.count('spares') === 1)
  const spare = app.host.vm
  t.match(await create(app, 'third'), { status: 409, body: { code: 'insufficient_resources' } })
  t.equal(await app.count('spares'), 1)
  t.equal((await app.call('DELETE', '/instances/first')).status, 204)
  t.equal((await create(app, 'third')).status, 201)
  t.equal(app.host.vms.find(({ spec }) => spec.id === spare.spec.id), spare, 'the very VM')
  t.same(await taken(app), running(2))
})

t.test('a name that is taken gives the room back that a spare VM was claimed with', async (t) => {
  const app = await startWithSpares(t)
  await app.warmUp(SMALL)
  t.match(await create(app, 'first'), { status: 409, body: { code: 'name_conflict' } })
  t.same(await taken(app), running(1))
  t.equal(await app.count('spares'), 1)
})

t.test('what a VM takes counts for as long as there is one, and the disk for as long as the instance exists', async (t) => {
  const app = await startResources(t, { ...TEN, capacity: { ...TEN.capacity, cpu: 2 } })
  await create(app, 'web')
  await app.waitFor('web', 'Running')
  for (const [path, count] of [['stop', 0], ['start', 1], ['standby', 0], ['restore', 1]] as const) {
    t.equal((await app.call('POST', `/instances/web/${path}`)).status, 200, path)
    if (count === 1) await app.waitFor('web', 'Running')
    t.same(await taken(app), running(count, 1), path)
  }
  await app.host.vm.exit()
  await app.waitFor('web', 'Stopped')
  t.same(await taken(app), running(0, 1), 'a program that ended')
  t.equal((await app.call('DELETE', '/instances/web')).status, 204)
  t.same(await taken(app), running(0))
})

t.test('start, restore and fork ask for room, and change nothing when there is none', async (t) => {
  const app = await startResources(t, { ...TEN, capacity: { ...TEN.capacity, cpu: 1 } })
  const { call } = app
  await create(app, 'web')
  await app.waitFor('web', 'Running')
  t.match(await call('POST', '/instances/web/fork', { name: 'twin', from_running: true }), { status: 409, body: { code: 'insufficient_resources' } })
  t.match((await call('GET', '/instances/web')).body, { state: 'Running' })
  t.equal((await call('POST', '/instances/web/fork', { name: 'asleep', from_running: true, target_state: 'Standby' })).status, 201, 'one without a VM takes its disk alone')
  t.match(await call('POST', '/instances/asleep/restore'), { status: 409, body: { code: 'insufficient_resources', message: /^this host has no room for that: cpu: / } })
  t.match((await call('GET', '/instances/asleep')).body, { state: 'Standby' })
  await call('POST', '/instances/web/stop')
  t.equal((await call('POST', '/instances/asleep/restore')).status, 200)
  t.match(await call('POST', '/instances/web/start', {}), { status: 409, body: { code: 'insufficient_resources' } })
  t.match((await call('GET', '/instances/web')).body, { state: 'Stopped' })
  t.same(await taken(app), running(1, 2))
  await call('POST', '/instances/asleep/standby')
  t.equal((await call('POST', '/instances/web/start', {})).status, 200)
})

for (const step of ['launch', 'launched'] as const) {
  t.test(`a create that fails at "${step}" gives its room back`, async (t) => {
    const app = await startResources(t)
    app.host.failures.set(step, new Error('no'))
    t.equal((await create(app, 'web')).status, 500)
    t.same(await taken(app), running(0))
  })
}

for (const [call, step] of [['start', 'launch'], ['restore', 'restore'], ['fork', 'restore']] as const) {
  t.test(`a ${call} that fails gives its room back`, async (t) => {
    const app = await startResources(t)
    await create(app, 'web')
    await app.waitFor('web', 'Running')
    if (call !== 'fork') await app.call('POST', `/instances/web/${call === 'start' ? 'stop' : 'standby'}`)
    app.host.failures.set(step, new Error('no'))
    t.ok((await app.call('POST', `/instances/web/${call}`, call === 'fork' ? { name: 'twin', from_running: true } : {})).status >= 400)
    t.same(await taken(app), running(call === 'fork' ? 1 : 0, 1))
  })
}

const shortages: readonly [name: string, config: Record<string, unknown>, fields: Record<string, unknown>, message: RegExp][] = [
  ['memory', { capacity: { memory: '1GB' } }, { size: '512MB', hotplug_size: '640MB' }, /memory: 1152MB wanted, 1GB of 1GB free$/],
  ['memory beside the reserve', { capacity: { memory: '1GB' }, reserve: { memory: '512MB' } }, { size: '513MB' }, /memory: 513MB wanted, 512MB of 512MB free$/],
  ['oversubscribed memory', { capacity: { memory: '1GB' }, oversubscription: { memory: 1.5 } }, { size: '2GB' }, /memory: 2GB wanted, 1536MB of 1536MB free$/],
  ['disk', { capacity: { disk: '1GB' } }, { overlay_size: '2GB' }, /disk: 2GB wanted, .* of 1GB free$/],
  ['the rate of disks', { capacity: { diskIo: '100MB/s' }, oversubscription: { diskIo: 1 } }, { disk_io_bps: '101MB/s' }, /disk I\/O: 101MB\/s wanted, 100MB\/s of 100MB\/s free$/],
  ['several things', { capacity: { cpu: 1, memory: '64MB' }, oversubscription: { cpu: 2 } }, { vcpus: 3 }, /: cpu: 3 vCPUs wanted, 2 vCPUs of 2 vCPUs free; memory: 128MB wanted/]
]
for (const [name, config, fields, message] of shortages) {
  t.test(`a create that is short of ${name} is told so`, async (t) => {
    const app = await startResources(t, { ...config, cgroups: { mode: 'off' } })
    t.match(await create(app, 'web', fields), { status: 409, body: { code: 'insufficient_resources', message } })
  })
}

t.test('writable disks may be promised beyond what there is, one by one no more than there is, and volumes count in full', async (t) => {
  const app = await startResources(t, { ...TEN, capacity: { ...TEN.capacity, disk: '10GB' } })
  for (const name of ['a', 'b', 'c']) t.equal((await create(app, name, { overlay_size: '8GB' })).status, 201, name)
  t.match(await create(app, 'large', { overlay_size: '11GB' }), { status: 409, body: { message: /disk: 11GB wanted, 10GB of 10GB free$/ } })
  const { disk, disk_breakdown: breakdown } = await viewOf(app, ADMIN_KEY)
  t.equal(breakdown.overlays_bytes, 24 * 2 ** 30)
  t.equal(disk.allocated, 0)
  t.ok(disk.available > 0 && disk.available <= 10 * 2 ** 30)
})

t.test('with overcommit.disk: false each writable disk counts in full', async (t) => {
  const app = await startResources(t, { ...TEN, capacity: { ...TEN.capacity, disk: '10GB' }, overcommit: { disk: false } })
  t.equal((await create(app, 'a', { overlay_size: '8GB' })).status, 201)
  t.match(await create(app, 'b', { overlay_size: '8GB' }), { status: 409, body: { code: 'insufficient_resources', message: /disk: 8GB wanted, 2GB of 10GB free$/ } })
  t.match(await viewOf(app, ADMIN_KEY), { disk: { allocated: 8 * 2 ** 30, available: 2 * 2 ** 30 } })
})

t.test('no writable disk is made while the file system has less free than must stay so, and what is there goes on', async (t) => {
  const capacity = { ...TEN.capacity, disk: '1000TB' }
  const before = await startResources(t, { ...TEN, capacity })
  await create(before, 'web')
  await before.waitFor('web', 'Running')
  // More than any disk of a test has.
  const app = await startResources(t, { ...TEN, capacity, reserve: { disk: '500TB' } }, { dataDir: await copyOfData(t, before.dataDir), host: before.host })
  t.match(await create(app, 'another'), { status: 409, body: { code: 'insufficient_resources', message: /disk: 32MB wanted, and the file system of the data folder has nothing left/ } })
  t.match(await viewOf(app, ADMIN_KEY), { disk: { available: 0 } })
  await app.waitFor('web', 'Running')
  t.equal((await app.call('POST', '/instances/web/stop', {})).status, 200)
  t.equal((await app.call('POST', '/instances/web/start', {})).status, 200)
})

t.test('bandwidth is counted in each direction', async (t) => {
  const host = new ScriptedHost()
  const network = host.connect()
  const whole = { downloadBps: 1_000_000, uploadBps: 2_000_000 }
  network.limitsOf = ({ vcpus, downloadBps, uploadBps }) => vcpus === Infinity ? whole : { ...downloadBps === undefined ? {} : { downloadBps }, ...uploadBps === undefined ? {} : { uploadBps } }
  const app = await startResources(t, { ...TEN, oversubscription: { network: 1 } }, { host })
  t.equal((await create(app, 'one', { network: { bandwidth_download: '4Mbps', bandwidth_upload: '16Mbps' } })).status, 201)
  t.match(await create(app, 'two', { network: { bandwidth_download: '5Mbps', bandwidth_upload: '8Mbps' } }), {
    status: 409, body: { message: 'this host has no room for that: network download: 5Mbps wanted, 4Mbps of 8Mbps free; network upload: 8Mbps wanted, 0B/s of 16Mbps free' }
  })
  t.match(await viewOf(app, ADMIN_KEY), {
    network: { capacity: 2_000_000, effective_limit: 2_000_000, allocated: 2_000_000, available: 0, source: 'configured' },
    allocations: [{ network_download_bps: 500_000, network_upload_bps: 2_000_000 }]
  })
})

t.test('bandwidth that nobody asks for is a share by vCPUs, shown and given to the network, of what the host can carry', async (t) => {
  const host = new ScriptedHost()
  const network = host.connect()
  const whole = { downloadBps: 8_000_000, uploadBps: 4_000_000 }
  network.limitsOf = ({ vcpus, downloadBps, uploadBps }) => vcpus === Infinity ? whole : { ...downloadBps === undefined ? {} : { downloadBps }, ...uploadBps === undefined ? {} : { uploadBps } }
  const app = await startResources(t, { ...TEN, capacity: { ...TEN.capacity, cpu: 4 }, oversubscription: { cpu: 4, network: 2 } }, { host })
  const one = await create(app, 'one', { vcpus: 2 })
  t.match(one, { status: 201, body: { network: { enabled: true, bandwidth_download: '16Mbps', bandwidth_upload: '8Mbps' } } })
  t.match(network.ports.get(String(one.body['id']))?.limits, { downloadBps: 2_000_000, uploadBps: 1_000_000 })
  t.match(await create(app, 'two', { vcpus: 1, network: { bandwidth_upload: '32Mbps' } }), { body: { network: { bandwidth_download: '8Mbps', bandwidth_upload: '32Mbps' } } })
  const none = await create(app, 'none', { vcpus: 1, network: { enabled: false } })
  t.same(none.body['network'], { enabled: false })
})

t.test('a spare VM has the share of its vCPUs, and becomes an instance that asks for no other', async (t) => {
  const host = new ScriptedHost()
  const network = host.connect()
  network.limitsOf = ({ vcpus, ...own }) => vcpus === Infinity ? { downloadBps: 8_000_000, uploadBps: 4_000_000 } : own
  const app = await startWithSpares(t, { ...TEN, oversubscription: { cpu: 1, network: 1 } }, { host })
  await app.warmUp(SMALL)
  const spare = host.vm
  const limits = { downloadBps: 800_000, uploadBps: 400_000 }
  t.match(network.ports.get(spare.spec.id)?.limits, limits)
  const other = await create(app, 'other', { network: { bandwidth_upload: '8Mbps' } })
  t.not(other.body['id'], spare.spec.id)
  const one = await create(app, 'one')
  t.equal(one.body['id'], spare.spec.id)
  t.match(network.ports.get(spare.spec.id)?.limits, limits)
})

t.test('without a rate that is known there is no limit, and the resources say why', async (t) => {
  const host = new ScriptedHost()
  host.connect()
  const app = await startResources(t, TEN, { host })
  const { body } = await create(app, 'one')
  t.notOk(Object.keys(Object(body['network'])).some((key) => key.startsWith('bandwidth')))
  t.match(await viewOf(app, ADMIN_KEY), { network: { source: 'unknown', reason: 'guests reach nothing outside (plugins.networking.config.uplink is none)' } })
})

t.test('a rate of disks is stored, shown, given to the VM, and kept', async (t) => {
  const app = await startResources(t)
  await create(app, 'web', { disk_io_bps: '10MB/s', hotplug_size: '100MB' })
  await app.waitFor('web', 'Running')
  const shown = { disk_io_bps: '10MB/s', hotplug_size: '128MB', size: '128MB' }
  const given = { diskBytesPerSecond: 10 * 2 ** 20, hotplugBytes: 128 * 2 ** 20, memoryBytes: 128 * 2 ** 20 }
  t.match((await app.call('GET', '/instances/web')).body, shown)
  t.match(app.host.vm.spec, given)
  t.match((await app.call('GET', '/instances/web/stats')).body, { allocated_memory_bytes: 256 * 2 ** 20 })
  for (const path of ['stop', 'start', 'standby', 'restore']) await app.call('POST', `/instances/web/${path}`)
  t.match(app.host.vm.spec, given)
  await app.waitFor('web', 'Running')
  t.match((await app.call('POST', '/instances/web/fork', { name: 'twin', from_running: true })).body, shown)
  t.match(app.host.vm.spec, given)
})

t.test('without one it is a share by vCPUs where a capacity is configured', async (t) => {
  const app = await startResources(t, { capacity: { cpu: 4, diskIo: '100MB/s' }, oversubscription: { cpu: 2, diskIo: 1, memory: 100 }, cgroups: { mode: 'off' } })
  await create(app, 'web', { vcpus: 2 })
  t.match((await app.call('GET', '/instances/web')).body, { disk_io_bps: '25MB/s' })
  t.match(await viewOf(app, ADMIN_KEY), { disk_io: { type: 'disk_io', capacity: 100 * 2 ** 20, allocated: 25 * 2 ** 20, available: 75 * 2 ** 20 } })
})

t.test('a spare VM gets its rate when it becomes an instance, and one with hotplug memory is not made of any', async (t) => {
  const app = await startWithSpares(t)
  await app.warmUp(SMALL)
  const spare = app.host.vm
  await create(app, 'slow', { disk_io_bps: '10MB/s' })
  t.equal(spare.spec.id, (await app.call('GET', '/instances/slow')).body['id'])
  t.equal(spare.diskLimit, 10 * 2 ** 20)
  await until(async () => await app.count('spares') === 1)
  await create(app, 'plugged', { hotplug_size: '128MB' })
  t.equal(await app.wayOf(String((await app.call('GET', '/instances/plugged')).body['id'])), 'by a boot')
  t.equal(alive(app).length, 4)
})

t.test('a driver that has no such limit is not asked for one', async (t) => {
  const host = new ScriptedHost()
  const driver: { features?: unknown } = host.driver
  delete driver.features
  const app = await startResources(t, { ...TEN, capacity: { ...TEN.capacity, diskIo: '1GB/s' } }, { host })
  t.match(await create(app, 'a', { disk_io_bps: '10MB/s' }), { status: 501, body: { code: 'not_supported', message: /^disk_io_bps: the hypervisor qemu/ } })
  t.match(await create(app, 'b', { hotplug_size: '128MB' }), { status: 501, body: { code: 'not_supported', message: /^hotplug_size/ } })
  t.equal((await create(app, 'c', { hotplug_size: '0' })).status, 201)
  t.notOk((await app.call('GET', '/instances/c')).body['disk_io_bps'], 'no share either')
})

t.test('GET /resources tells what there is and who has it, and needs its scope', async (t) => {
  const app = await startResources(t, { ...TEN, oversubscription: { cpu: 1.5 } })
  await create(app, 'web', { vcpus: 2 })
  const id = (await app.call('GET', '/instances/web')).body['id']
  const { status, body } = await app.call('GET', '/resources')
  t.equal(status, 200)
  t.match(body, {
    cpu: { type: 'cpu', capacity: 10, effective_limit: 15, allocated: 2, available: 13, oversub_ratio: 1.5, source: 'configured' },
    memory: { type: 'memory', capacity: 100 * 2 ** 30, allocated: 2 ** 27, oversub_ratio: 1 },
    disk: { type: 'disk', capacity: 100 * 2 ** 30 },
    gpu: null,
    disk_breakdown: { images_bytes: 0, oci_cache_bytes: 0, volumes_bytes: 0, overlays_bytes: 32 * 2 ** 20 },
    allocations: [{ instance_id: id, instance_name: 'web', cpu: 2, memory_bytes: 2 ** 27, disk_bytes: 2 ** 25, disk_io_bps: 0 }],
    cgroups: { active: false, reason: /turned off/ }
  })
  t.notOk(body['disk_io'], 'no capacity is configured')
  t.equal((await app.app.http.inject({ url: '/resources' })).statusCode, 401)
  const { host, runtimes } = (await app.call('GET', '/capabilities')).body
  t.match(host, { cgroups: { active: false, reason: /turned off/ } })
  t.match(Object(runtimes).find(({ name }: { name: string }) => name === 'qemu'), { features: ['snapshots', 'standby', 'fork', 'disk-io-limit', 'hotplug-memory'] })
})

// Where the VM is, in each case, is what recovery decides; what is taken is what there is then.
const cuts: readonly [call: string, before: readonly string[], step: ImagingStep, count: number][] = [
  ['create', [], 'launch', 0],
  ['start', ['stop'], 'launch', 0],
  ['standby', [], 'captured', 1],
  ['standby', [], 'kill', 0],
  ['standby', [], 'killed', 0],
  ['restore', ['standby'], 'restore', 0],
  ['restore', ['standby'], 'wake', 1]
]
for (const [name, calls, step, count] of cuts) {
  t.test(`a ${name} that was cut off at "${step}" leaves ${count} VM's worth taken`, async (t) => {
    const before = await startResources(t)
    const isCreate = name === 'create'
    if (!isCreate) {
      await create(before, 'web')
      await before.waitFor('web', 'Running')
    }
    for (const call of calls) await before.call('POST', `/instances/web/${call}`)
    const cut = async (): Promise<unknown> => isCreate ? await create(before, 'web') : await before.call('POST', `/instances/web/${name}`)
    const after = await crashAt(t, before, step, cut, async (t, options) => await startResources(t, TEN, options))
    if (!isCreate && count === 0) await until(async () => (await taken(after)).cpu === 0)
    t.same(await taken(after), running(count, isCreate ? 0 : 1))
    if (!isCreate) t.equal((await after.call('DELETE', '/instances/web')).status, 204)
    t.same(await taken(after), running(0))
  })
}

t.test('a VM that ended while no server was there has given its room back', async (t) => {
  const before = await startResources(t)
  await create(before, 'web')
  await before.waitFor('web', 'Running')
  const dataDir = await copyOfData(t, before.dataDir)
  before.host.vm.state = { status: 'gone' }
  const after = await startResources(t, TEN, { host: before.host, dataDir })
  await after.waitFor('web', 'Stopped')
  t.same(await taken(after), running(0, 1))
})

t.test('claims of instances of before the plugin are made at the start, even beyond what there is room for', async (t) => {
  const before = await startResources(t)
  for (const name of ['one', 'two']) {
    await create(before, name)
    await before.waitFor(name, 'Running')
  }
  const after = await startResources(t, { ...TEN, capacity: { ...TEN.capacity, cpu: 1 } }, { host: before.host, dataDir: await copyOfData(t, before.dataDir) })
  t.same(await taken(after), running(2))
  t.match((await after.call('GET', '/resources')).body, { cpu: { effective_limit: 1, allocated: 2, available: 0 } })
  t.match(await create(after, 'three'), { status: 409 })
  t.equal((await after.call('POST', '/instances/one/standby')).status, 200)
  t.equal((await after.call('POST', '/instances/two/stop')).status, 200)
  t.equal((await after.call('POST', '/instances/one/restore')).status, 200)
})
