// Instances and the network, on a scripted host: who has an address and a TAP after each operation, and after each failure.
import t, { type Test } from 'tap'
import { startApp, type StartOptions, type TestApp } from './app.ts'
import { until } from './crash.ts'
import { openDatabase } from './database.ts'
import { ScriptedHost, type ImagingStep } from './scripted.ts'
import type { ScriptedNetwork } from './scripted-network.ts'
import { alive, startWithTemplates } from './templates-app.ts'

interface Networked extends TestApp { readonly network: ScriptedNetwork }

/** On a network that must never be asked for anything in the wrong order. */
function hostWith (t: Test): { host: ScriptedHost, network: ScriptedNetwork } {
  const host = new ScriptedHost()
  const network = host.connect()
  // Assertions come too late in a teardown; what it throws fails the test.
  t.teardown(() => { if (network.faults.length > 0) throw new Error(network.faults.join('; ')) })
  return { host, network }
}

async function start (t: Test, options: StartOptions = {}): Promise<Networked> {
  const { host, network } = hostWith(t)
  return { ...await startApp(t, { host, ...options }), network }
}

async function running (t: Test, fields: Record<string, unknown> = {}): Promise<Networked & { id: string }> {
  const app = await start(t)
  const id = await app.make('web', fields)
  await app.waitFor('web', 'Running')
  return { ...app, id }
}

const plugged = ({ network }: Networked): string[] => [...network.ports.keys()].sort()
const addressed = ({ network }: Networked): string[] => [...network.addresses.keys()].sort()

async function rows ({ dataDir }: TestApp): Promise<string[]> {
  const database = await openDatabase(dataDir)
  try {
    const found: { id: string }[] = await database('instances_instances').select('id')
    return found.map(({ id }) => id).sort()
  } finally {
    await database.destroy()
  }
}

t.test('an instance has a network without being asked, and its guest and VM are told of it', async (t) => {
  const { call, host, id, network } = await running(t, { vcpus: 1 })
  const address = network.addresses.get(id)
  t.match((await call('GET', '/instances/web')).body, { network: { enabled: true, name: 'default', ip: address?.ip, mac: address?.mac } })
  t.same((await call('GET', '/capabilities')).body['network'], { model: 'bridge', subnet: '10.1.0.0/24', gateway: '10.1.0.1', guest_to_guest: false })
  t.same(host.vm.spec.network, { namespace: '/run/netns/scripted', tap: `tap-${id.slice(0, 8)}`, mac: address?.mac })
  t.same(host.vm.workload?.network, { mac: address?.mac, address: `${address?.ip}/24`, gateway: '10.1.0.1', dns: ['10.1.0.1'] })
  t.same([...network.ports], [[id, { uid: host.vm.spec.identity?.uid, limits: { vcpus: 1 }, egress: 'none' }]])
  t.match((await call('GET', '/instances/web/stats')).body, { network_rx_bytes: 1000, network_tx_bytes: 200 })
})

t.test('one that does without has neither address nor device', async (t) => {
  const { call, host, network } = await running(t, { network: { enabled: false } })
  t.same((await call('GET', '/instances/web')).body['network'], { enabled: false })
  t.notOk(host.vm.spec.network)
  t.notOk(host.vm.workload?.network)
  t.match((await call('GET', '/instances/web/stats')).body, { network_rx_bytes: 0 })
  for (const path of ['standby', 'restore', 'stop', 'start']) t.equal((await call('POST', `/instances/web/${path}`)).status, 200)
  t.equal((await call('DELETE', '/instances/web')).status, 204)
  t.same(network.calls, [])
})

t.test('limits are what was asked for', async (t) => {
  const { call, id, network } = await running(t, { network: { bandwidth_download: '8Mbps', bandwidth_upload: '1MB/s' } })
  t.match(network.ports.get(id), { limits: { downloadBps: 1_000_000, uploadBps: 2 ** 20 } })
  t.match((await call('GET', '/instances/web')).body['network'], { enabled: true, bandwidth_download: '8Mbps', bandwidth_upload: '1MB/s' })
  t.match(await call('POST', '/instances', { name: 'b', image: 'test', network: { egress: { enabled: true } } }), { status: 400, body: { code: 'plugin_disabled', message: /egress/ } })
})

t.test('the address stays through stop, start, standby and restore; the TAP is there while a VM is', async (t) => {
  const app = await running(t)
  const { call, host, id, network } = app
  const { network: before } = (await call('GET', '/instances/web')).body
  const does = async (path: string): Promise<string[]> => {
    t.equal((await call('POST', `/instances/web/${path}`)).status, 200, path)
    t.same((await call('GET', '/instances/web')).body['network'], before)
    t.same(addressed(app), [id])
    return plugged(app)
  }
  t.same(await does('stop'), [])
  t.same(await does('start'), [id])
  await app.waitFor('web', 'Running')
  t.same(await does('standby'), [])
  t.same(await does('restore'), [id])
  t.same(host.vm.spec.network?.mac, network.addresses.get(id)?.mac)
  t.same(host.vm.wakes, [{}], 'a machine that goes on has its address still')
  await host.vm.exit()
  await app.waitFor('web', 'Stopped')
  t.same(plugged(app), [])
  t.equal((await call('DELETE', '/instances/web')).status, 204)
  t.same(addressed(app), [])
})

for (const state of ['Running', 'Standby', 'Stopped'] as const) {
  t.test(`a fork of an instance in ${state} has an address of its own, and knows it`, async (t) => {
    const app = await running(t)
    const { call, host, id, network } = app
    if (state === 'Standby') await call('POST', '/instances/web/standby')
    if (state === 'Stopped') await call('POST', '/instances/web/stop')
    const { body } = await call('POST', '/instances/web/fork', { name: 'twin', from_running: true, target_state: 'Running' })
    const twin = String(body['id'])
    const address = network.addresses.get(twin)
    t.match(body['network'], { enabled: true, ip: address?.ip, mac: address?.mac })
    t.not(address?.ip, network.addresses.get(id)?.ip)
    t.same(plugged(app), (state === 'Running' ? [id, twin] : [twin]).sort())
    await app.waitFor('twin', 'Running')
    const told = { mac: address?.mac, address: `${address?.ip}/24`, gateway: '10.1.0.1', dns: ['10.1.0.1'] }
    if (state === 'Stopped') t.match(host.vm.workload, { network: told, newMachine: true })
    else t.same(host.vm.wakes, [{ hostname: 'twin', newMachine: true, network: told }])
    t.equal(host.vm.spec.network?.mac, address?.mac)
  })
}

t.test('a fork that does not run has an address and no TAP, and its guest is told when it is restored', async (t) => {
  const app = await running(t)
  const { call, host, id, network } = app
  const { body } = await call('POST', '/instances/web/fork', { name: 'twin', from_running: true, target_state: 'Standby' })
  const twin = String(body['id'])
  t.same(plugged(app), [id])
  t.same(addressed(app), [id, twin].sort())
  t.match(await call('POST', '/instances/twin/restore'), { status: 200, body: { state: 'Running' } })
  t.match(host.vm.wakes, [{ network: { mac: network.addresses.get(twin)?.mac } }])
  t.same(plugged(app), [id, twin].sort())
})

for (const step of ['allocate', 'plug', 'launch', 'launched'] as const) {
  t.test(`a create that fails at "${step}" leaves nothing`, async (t) => {
    const app = await start(t)
    app.host.failures.set(step, new Error('no'))
    t.equal((await app.call('POST', '/instances', { name: 'web', image: 'test', overlay_size: '32MB' })).status, 500)
    t.same([plugged(app), addressed(app), await rows(app), [...app.host.held]], [[], [], [], []])
    app.host.failures.clear()
    await app.make('web')
  })
}

const repeated: readonly [call: string, before: string, steps: readonly ImagingStep[]][] = [
  ['start', 'stop', ['plug', 'launch', 'launched']],
  ['restore', 'standby', ['plug', 'restore']]
]
for (const [name, before, steps] of repeated) {
  for (const step of steps) {
    t.test(`a ${name} that fails at "${step}" leaves the instance as it was, without a TAP`, async (t) => {
      const app = await running(t)
      await app.call('POST', `/instances/web/${before}`)
      const { state } = (await app.call('GET', '/instances/web')).body
      app.host.failures.set(step, new Error('no'))
      t.not((await app.call('POST', `/instances/web/${name}`)).status, 200)
      t.match((await app.call('GET', '/instances/web')).body, { state })
      t.same([plugged(app), addressed(app)], [[], [app.id]])
      app.host.failures.clear()
      t.equal((await app.call('POST', `/instances/web/${name}`)).status, 200)
      t.same(plugged(app), [app.id])
    })
  }
}

t.test('a restore that fails after its guest has run leaves no TAP', async (t) => {
  const app = await running(t)
  await app.call('POST', '/instances/web/standby')
  app.host.failures.set('restored', new Error('no'))
  t.not((await app.call('POST', '/instances/web/restore')).status, 200)
  t.match((await app.call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true }, 'what was kept took its place again')
  t.same(plugged(app), [])
})

for (const step of ['allocate', 'plug', 'restore', 'restored'] as const) {
  t.test(`a fork that fails at "${step}" leaves nothing, and its source goes on`, async (t) => {
    const app = await running(t)
    app.host.failures.set(step, new Error('no'))
    t.equal((await app.call('POST', '/instances/web/fork', { name: 'twin', from_running: true })).status, 500)
    t.same([plugged(app), addressed(app), await rows(app)], [[app.id], [app.id], [app.id]])
    t.match((await app.call('GET', '/instances/web')).body, { state: 'Running' })
  })
}

t.test('a standby that fails leaves the TAP of the VM that goes on', async (t) => {
  const app = await running(t)
  app.host.failures.set('capture', new Error('no'))
  t.equal((await app.call('POST', '/instances/web/standby')).status, 500)
  t.same(plugged(app), [app.id])
  t.notOk(app.network.calls.some((call) => call.startsWith('unplug')))
})

t.test('a TAP that could not be removed keeps nobody from stopping, and goes with the instance', async (t) => {
  const app = await running(t)
  app.host.failures.set('unplug', new Error('no'))
  t.match(await app.call('POST', '/instances/web/stop'), { status: 200, body: { state: 'Stopped' } })
  t.match(await app.call('POST', '/instances/web/start'), { status: 200 })
  await app.waitFor('web', 'Running')
  t.match(await app.call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby' } })
  t.same(plugged(app), [app.id])
  t.equal((await app.call('DELETE', '/instances/web')).status, 204)
  t.same([plugged(app), addressed(app)], [[], []])
})

t.test('a TAP that could not be removed when its VM ended is removed later, and not while there is a VM again', async (t) => {
  const app = await running(t)
  app.host.failures.set('unplug', new Error('no'))
  t.match(await app.call('POST', '/instances/web/stop'), { status: 200, body: { state: 'Stopped' } })
  t.same(plugged(app), [app.id])
  app.host.failures.clear()
  await until(() => plugged(app).length === 0)
  app.host.failures.set('unplug', new Error('no'))
  t.match(await app.call('POST', '/instances/web/start'), { status: 200 })
  await app.waitFor('web', 'Running')
  t.match(await app.call('POST', '/instances/web/stop'), { status: 200 })
  t.match(await app.call('POST', '/instances/web/start'), { status: 200 })
  await app.waitFor('web', 'Running')
  app.host.failures.clear()
  await new Promise((resolve) => setTimeout(resolve, 1500))
  t.same(plugged(app), [app.id], 'and nobody was unplugged while its VM ran, which the scripted network would tell')
})

t.test('an address of a create that failed, and that could not be given back then, is given back later', async (t) => {
  const app = await running(t)
  app.host.failures.set('launch', new Error('no')).set('release', new Error('no'))
  t.match(await app.call('POST', '/instances', { name: 'b', image: 'test' }), { status: 500 })
  t.equal(addressed(app).length, 2)
  await until(() => app.network.calls.filter((call) => call.startsWith('release')).length > 1)
  t.equal(addressed(app).length, 2, 'once more is not enough')
  app.host.failures.clear()
  await until(() => addressed(app).length === 1)
  t.same(addressed(app), [app.id])
})

t.test('an address that cannot be given back keeps the row, so that the delete can be repeated', async (t) => {
  const app = await running(t)
  app.host.failures.set('release', new Error('no'))
  t.equal((await app.call('DELETE', '/instances/web')).status, 500)
  t.same(await rows(app), [app.id])
  app.host.failures.clear()
  t.equal((await app.call('DELETE', '/instances/web')).status, 204)
  t.same([addressed(app), await rows(app)], [[], []])
})

t.test('a delete that failed is tried again, until nothing of the instance is left', { timeout: 120_000 }, async (t) => {
  const app = await running(t)
  app.host.failures.set('release', new Error('no'))
  t.equal((await app.call('DELETE', '/instances/web')).status, 500)
  app.host.failures.clear()
  await until(async () => (await rows(app)).length === 0)
  t.same(addressed(app), [])
  t.equal((await app.call('GET', '/instances/web')).status, 404)
})

t.test('without the plugin an instance of before has no address, and says what it needs to start', async (t) => {
  const app = await running(t)
  await app.call('POST', '/instances/web/stop')
  await app.app.stop()
  app.host.network = undefined
  const { call } = await startApp(t, { host: app.host, dataDir: app.dataDir })
  t.same((await call('GET', '/instances/web')).body['network'], { enabled: true, name: 'default', ip: null, mac: null })
  t.match(await call('POST', '/instances/web/start'), { status: 400, body: { code: 'plugin_disabled', message: /networking/ } })
  t.match(await call('POST', '/instances', { name: 'b', image: 'test', overlay_size: '32MB' }), { status: 201, body: { network: { enabled: false } } })
  t.equal((await call('DELETE', '/instances/web')).status, 204)
})

t.test('a spare VM has the network of the instance that it becomes, and all of it goes with the server', async (t) => {
  const { host, network } = hostWith(t)
  const app = await startWithTemplates(t, { host })
  const first = await app.warmUp()
  const spare = host.vm
  t.same([...network.addresses.keys()].sort(), [first, spare.spec.id].sort(), 'the VM that the template was made of has given its address back')
  t.same([...network.ports.keys()].sort(), [first, spare.spec.id].sort())
  const id = await app.make('second')
  t.equal(await app.wayOf(id), 'from a spare VM')
  t.equal(id, spare.spec.id)
  t.match((await app.call('GET', '/instances/second')).body['network'], { ip: network.addresses.get(id)?.ip })
  t.match(spare.workload?.network, { mac: network.addresses.get(id)?.mac })
  t.same(spare.rehearsedNetwork, spare.workload?.network, 'its guest has had that network since it rehearsed')
  await until(async () => await app.count('spares') === 1)
  const limited = await app.make('limited', { network: { bandwidth_upload: '1MB/s' } })
  t.equal(await app.wayOf(limited), 'from a template', 'a spare VM has no limits')
  t.match(network.ports.get(limited), { limits: { uploadBps: 2 ** 20 } })
  t.equal(await app.wayOf(await app.make('alone', { network: { enabled: false } })), 'by a boot', 'without the device it is another shape')
  const ids = JSON.parse((await app.call('GET', '/instances')).text).filter((each: { network: { enabled: boolean } }) => each.network.enabled).map((each: { id: string }) => each.id)
  await app.app.stop()
  t.same([...network.addresses.keys()].sort(), ids.sort())
  t.same([...network.ports.keys()].sort(), ids.sort(), 'VMs go on without the server')
})

for (const step of ['plug', 'allocate'] as const) {
  t.test(`spare VMs that fail at "${step}" leave nothing`, async (t) => {
    const { host, network } = hostWith(t)
    const app = await startWithTemplates(t, { host })
    host.behaviour = 'boot-only'
    const first = await app.make('first')
    host.failures.set(step, new Error('no'))
    host.behaviour = 'run'
    host.vm.begin()
    await until(async () => app.lines.some(({ msg }) => String(msg).includes('could not be made')))
    t.same([[...network.addresses.keys()], [...network.ports.keys()], (await app.remains()).rows], [[first], [first], [first]])
    t.equal(alive(app).length, 1)
  })
}

t.test('an instance that finds no address gets that of a spare VM', async (t) => {
  const { host, network } = hostWith(t)
  const app = await startWithTemplates(t, { host })
  await app.warmUp()
  network.capacity = 2
  const other = await app.make('other', { vcpus: 3 })
  t.ok(network.addresses.has(other))
  t.match(await app.call('POST', '/instances', { name: 'third', image: 'test', overlay_size: '32MB', vcpus: 3 }), { status: 409, body: { code: 'insufficient_resources' } })
})
