// VMs that are kept in standby, on a scripted host: what a restore finds of them, what ends them, and that nothing of them is seen meanwhile.
import { readdir, utimes } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { Type } from 'typebox'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import { startApp, type StartOptions, type TestApp } from './app.ts'
import { facing } from './compressing.ts'
import { startWithCopies } from './copies-app.ts'
import { until } from './crash.ts'
import { asked, enforced, hostWith } from './egress-app.ts'
import { ON, restored, runningIn, type Running } from './hot-standby/kept-app.ts'
import { ScriptedHost } from './scripted.ts'

const RUNNING = ['memory', 'operations.log', 'output.log', 'overlay.ext4', 'report', 'vmm.log']
const running = async (t: Test, options: StartOptions = {}, fields?: Record<string, unknown>): Promise<Running> => await runningIn(await startApp(t, { ...options, config: { ...ON, ...options.config } }), fields)

t.test('standby sets the VM aside, and a restore goes on with it and tells its guest what any restored guest is told', async (t) => {
  const { call, host, folder, steps } = await running(t)
  const { vm } = host
  t.equal(vm.connections, 1)
  t.match(await call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby', has_snapshot: true } })
  t.same(steps.splice(0), ['sleep', 'slept', 'capture', 'captured'])
  t.match([vm.state.status, vm.phase, vm.connections], ['paused', 'asleep', 0])
  t.same((await readdir(folder)).sort(), [...RUNNING, 'standby'].sort(), 'its image is whole')
  t.match((await call('GET', '/instances/web/stats')).body, { vm_kept: true, network_rx_bytes: 0 })
  await restored(t, { call })
  t.same(steps, ['resume', 'aim', 'wake', 'woken'])
  t.equal(host.vms.length, 1)
  t.match([vm.state.status, vm.phase, vm.connections], ['running', 'running', 1])
  t.same(vm.wakes, [{}])
  t.same((await readdir(folder)).sort(), RUNNING, 'its image is used up')
  t.match((await call('GET', '/instances/web/stats')).body, { vm_kept: false })
  t.match(await call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby' } })
  t.match(await call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  t.match(await call('POST', '/instances/web/stop'), { status: 200, body: { state: 'Stopped' } })
  t.equal(host.vms.length, 1)
})

t.test('nobody is connected to the guest from its capture on', async (t) => {
  const { call, host } = await running(t)
  const seen: number[] = []
  host.onStep = (step, vm) => { if (step === 'capture' || step === 'captured' || step === 'resume') seen.push(vm?.connections ?? -1) }
  await call('POST', '/instances/web/standby')
  await new Promise((resolve) => setTimeout(resolve, 300))
  await call('POST', '/instances/web/restore')
  t.same(seen, [0, 0, 0])
})

for (const step of ['sleep', 'capture'] as const) {
  t.test(`a standby that fails at "${step}" leaves the instance running, with its guest awake`, async (t) => {
    const { call, host } = await running(t)
    host.failures.set(step, Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' }))
    t.match(await call('POST', '/instances/web/standby'), { status: 409, body: { code: 'insufficient_resources' } })
    host.failures.clear()
    t.match((await call('GET', '/instances/web')).body, { state: 'Running', has_snapshot: false })
    await until(async () => host.vm.phase === 'running' && host.vm.connections === 1)
    t.match(await call('POST', '/instances/web/standby'), { status: 200 })
  })
}

t.test('its TAP is closed off meanwhile, its policy lifted, and both are in force before it goes on', async (t) => {
  const { host, network, egress } = hostWith(t)
  const app = await startApp(t, { host, config: ON })
  const web = await runningIn(app, asked)
  const has = { ...web, network, egress }
  await web.call('POST', '/instances/web/standby')
  await until(async () => network.suspended.has(web.id) && enforced(has).length === 0)
  t.notOk(network.calls.includes(`unplug ${web.id}`))
  web.steps.splice(0)
  await restored(t, web)
  t.ok(web.steps.indexOf('portResumed') < web.steps.indexOf('resume'))
  t.same([network.suspended.size, enforced(has)], [0, [web.id]])
  t.equal(host.vms.length, 1)
  await web.call('POST', '/instances/web/standby')
  t.equal((await web.call('DELETE', '/instances/web')).status, 204)
  t.same([host.vm.state.status, network.ports.size, network.addresses.size], ['gone', 0, 0])
})

t.test('a VM whose TAP is gone is of no use, and another one is started on the image', async (t) => {
  const host = new ScriptedHost()
  const network = host.connect()
  const web = await runningIn(await startApp(t, { host, config: ON }))
  await web.call('POST', '/instances/web/standby')
  await until(async () => network.suspended.has(web.id))
  network.ports.delete(web.id)
  await restored(t, web)
  t.same(host.vms.map(({ state }) => state.status), ['gone', 'running'])
  t.same(network.faults, [])
})

const changes: Readonly<Record<string, (app: TestApp) => Promise<unknown>>> = {
  'an update': async ({ call }) => await call('PATCH', '/instances/web', { ttl: '1h' }),
  'its VM\'s own end': async ({ host }) => { host.vm.set({ status: 'gone' }) },
  'a change of its memory': async ({ dataDir, host }) => { await utimes(host.vm.spec.memory?.path ?? dataDir, 1, 1) }
}
for (const [what, change] of Object.entries(changes)) {
  t.test(`${what} costs nothing but the VM that was kept`, async (t) => {
    const web = await running(t)
    const kept = web.host.vm
    await web.call('POST', '/instances/web/standby')
    await change(web)
    t.match((await web.call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true, state_error: null })
    await restored(t, web)
    t.equal(web.host.vms.length, 2)
    t.equal(kept.state.status, 'gone')
    t.match(web.host.vm.restoredFrom, { state: 'state of a guest asleep', memory: `memory of pid ${kept.handle.pid}` })
  })
}

t.test('forks and copies are made of the image beside the VM, which they do not touch', async (t) => {
  const app = await startWithCopies(t, { config: ON })
  const web = await runningIn(app)
  await web.call('POST', '/instances/web/standby')
  t.match(await web.call('POST', '/instances/web/fork', { name: 'twin', target_state: 'Running' }), { status: 201, body: { state: 'Running' } })
  const copy = await app.copies.capture('web', 'Standby', app.files('one'))
  t.match(web.host.vms.map(({ state }) => state.status), ['paused', 'running'])
  await restored(t, web)
  t.equal(web.host.vms.length, 2)
  await web.call('POST', '/instances/web/standby')
  await app.copies.restore('web', copy, app.files('one'), {})
  t.equal(web.host.vms[0]?.state.status, 'gone', 'another memory takes the place of its own')
  t.match((await web.call('GET', '/instances/web')).body, { state: 'Running' })
})

t.test('the VM goes before its image is compressed', async (t) => {
  const app = await running(t)
  const web = facing(app, app.id)
  await web.call('POST', '/instances/web/standby', { compression: { enabled: true } })
  t.equal(web.host.vm.state.status, 'paused')
  await web.compressed()
  t.equal(web.host.vm.state.status, 'gone')
  await restored(t, web)
  t.equal(web.host.vms.length, 2)
})

t.test('no more are kept than the configuration says, and those that went to standby first go', async (t) => {
  for (const [config, kept] of [[{ maxCount: 2 }, 2], [{ maxSize: '300MB' }, 1], [{ maxSize: '255MB' }, 0], [{ maxCount: 0 }, 0], [{ keep: '0s' }, 0], [{ enabled: false }, 0]] as const) {
    const { call, make, waitFor, host } = await startApp(t, { config: { hotStandby: { enabled: true, ...config } } })
    for (const name of ['one', 'two', 'three']) {
      await make(name, { size: '256MB' })
      await waitFor(name, 'Running')
    }
    for (const name of ['one', 'two', 'three']) await call('POST', `/instances/${name}/standby`)
    await until(async () => host.vms.filter(({ state }) => state.status === 'paused').length === kept)
    t.same(host.vms.map(({ state }) => state.status), [3, 2, 1].map((age) => age > kept ? 'gone' : 'paused'), JSON.stringify(config))
    for (const name of ['one', 'two', 'three']) t.match(await call('POST', `/instances/${name}/restore`), { status: 200, body: { state: 'Running' } })
  }
})

t.test('one is kept for its time', async (t) => {
  const { call, host } = await running(t, { config: { hotStandby: { enabled: true, keep: '50ms' } } })
  await call('POST', '/instances/web/standby')
  await until(async () => host.vm.state.status === 'gone')
  t.match((await call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
  t.match(await call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
})

t.test('a driver that does not say that it can keeps none', async (t) => {
  const host = new ScriptedHost()
  Object.assign(host.driver.imaging ?? {}, { keepsPaused: false })
  const { call } = await running(t, { host })
  await call('POST', '/instances/web/standby')
  t.equal(host.vm.state.status, 'gone')
  t.notOk(JSON.stringify((await call('GET', '/capabilities')).body).includes('hot-standby'))
})

t.test('the server that ends takes those that it keeps with it', async (t) => {
  const web = await running(t)
  await web.call('POST', '/instances/web/standby')
  await web.app.stop()
  t.equal(web.host.vm.state.status, 'gone')
  const later = await startApp(t, { host: web.host, dataDir: web.dataDir, config: ON })
  t.match(await later.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
})

t.test('a VM that does not go on has used its image up, since nobody knows whether its guest has taken a step', async (t) => {
  const { call, host, folder } = await running(t)
  await call('POST', '/instances/web/standby')
  host.failures.set('resume', new Error('the VMM ended'))
  t.match(await call('POST', '/instances/web/restore'), { status: 409, body: { code: 'image_used_up' } })
  host.failures.clear()
  t.match((await call('GET', '/instances/web')).body, { state: 'Stopped', has_snapshot: false, exit_message: /memory .* was lost/ })
  t.equal(host.vm.state.status, 'gone')
  t.same((await readdir(folder)).filter((name) => name.startsWith('standby') || name === 'memory'), [])
})

t.test('without memory files the memory that was written for the image goes once the VM is restored', async (t) => {
  const { call, folder, host } = await running(t, { config: { memoryFiles: false } })
  await call('POST', '/instances/web/standby')
  t.ok((await readdir(folder)).includes('memory'))
  await call('POST', '/instances/web/restore')
  await until(async () => !(await readdir(folder)).includes('memory'))
  t.match(await call('POST', '/instances/web/standby'), { status: 200 })
  t.ok((await readdir(folder)).includes('memory'))
  t.equal(host.vms.length, 1)
})

t.test('what is kept is told: in the figures, in the capabilities', async (t) => {
  let registry: { metrics (): Promise<string> } | undefined
  const reader = definePlugin({
    manifest: { id: 'metrics-reader', provides: [], requires: ['metrics'], config: Type.Object({}, { additionalProperties: false }) },
    create: ({ metrics }) => ({ async start () { registry = metrics } })
  })
  const web = await running(t, { plugins: [reader] })
  const figures = async (): Promise<string> => await registry?.metrics() ?? ''
  await web.call('POST', '/instances/web/standby')
  t.match(await figures(), /berth_instances_kept_vms 1\n[^]*berth_instances_kept_vms_memory_bytes 268435456/)
  await restored(t, web)
  await web.call('POST', '/instances/web/standby')
  await web.call('PATCH', '/instances/web', { ttl: '1h' })
  await restored(t, web)
  t.match(await figures(), /berth_instances_vms_kept_total 2/)
  t.match(await figures(), /berth_instances_kept_vms_ended_total\{reason="changed"\} 1/)
  t.match(await figures(), /berth_instances_restored_total\{way="hot"\} 1\n[^]*berth_instances_restored_total\{way="cold"\} 1/)
  t.match((await web.call('GET', '/capabilities')).text, /"hot-standby"/)
})
