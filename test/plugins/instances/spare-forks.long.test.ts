// Forks that are kept ready, on a scripted host: how many are made, what becomes of them, and what a fork finds that there is none for.
import { readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { diskMark, logs } from './copies-app.ts'
import { until } from './crash.ts'
import { hostWith, asked, REAL } from './egress-app.ts'
import { ScriptedHost } from './scripted.ts'
import { asleep, copied, tidied, wayOf } from './spare-forks-app.ts'
import { alive } from './templates-app.ts'

t.test('after a burst of forks as many are kept ready as it would have taken, and the next burst takes them', async (t) => {
  const app = await copied(t)
  const { call, fork, spares } = app
  for (const id of await fork('a', 'b', 'c')) t.equal(await wayOf(app, id), 'copy')
  const ready = await spares(3)
  t.equal(await app.count('spares'), 4, 'the metrics count them with those of templates')
  t.same(JSON.parse((await call('GET', '/instances')).text).map(({ name }: { name: string }) => name).sort().reverse(), ['web', 'c', 'b', 'a'], 'they are in no list')
  const next = await fork('d', 'e', 'f')
  for (const id of next) t.equal(await wayOf(app, id), 'spare')
  t.same(ready.map(({ spec }) => spec.id).sort(), next.sort())
  await spares(3)
  await tidied(app)
})

t.test('a fork that was kept ready is what every other fork is', async (t) => {
  const app = await copied(t)
  const { call, copies, copy, dataDir, files, folder, fork, host, id, spares } = app
  const [cold = ''] = await fork('cold')
  const [ready] = await spares(1)
  t.match(ready, { wakes: [], rehearsals: 1, connections: 1, restoredFrom: { state: 'state of a guest asleep' } }, 'its guest has rehearsed to be woken, and was not')
  const view = await copies.fork(copy, files('one'), { name: 'warm', env: { A: 'c' }, tags: { team: 'y' }, source: { kind: 'snapshot', id: 'one' } })
  const warm = String(Object(view).id)
  t.match(view, { name: 'warm', state: 'Running', env: { A: 'c' }, tags: { team: 'y' }, source: { kind: 'snapshot', id: 'one' } })
  t.equal(ready?.spec.id, warm)
  t.same(ready?.wakes, [{ hostname: 'warm', newMachine: true }])
  t.same((await readdir(folder(warm))).sort(), (await readdir(folder(cold))).sort())
  t.same((await readdir(folder(warm))).sort(), ['memory', ...logs].sort())
  t.equal(await diskMark(join(folder(warm), 'overlay.ext4')), await diskMark(files('one').overlay))
  t.ok(host.held.has(`instance:${warm}`))
  const own = ['id', 'name', 'env', 'tags', 'source', 'created_at', 'started_at', 'current_phase_since', 'phase_durations_ms']
  const others = async (name: string): Promise<unknown> => Object.entries((await call('GET', `/instances/${name}`)).body).filter(([key]) => !own.includes(key))
  t.same(await others('warm'), await others('cold'))
  t.match(await call('POST', '/instances/warm/standby'), { status: 200, body: { state: 'Standby' } })
  t.match(await call('POST', '/instances/warm/restore'), { status: 200, body: { state: 'Running' } })
  t.equal((await call('DELETE', '/instances/warm')).status, 204)
  await spares(1)
  await tidied(app)
  t.ok((await readdir(join(dataDir, 'instances'))).includes(id))
})

t.test('a fork that is kept ready is cut off from the network from before its guest\'s first step until it has an identity of its own', async (t) => {
  const { host, network } = hostWith(t)
  const app = await copied(t, { host, fields: { network: { enabled: true } } })
  const moments: string[] = []
  host.onStep = async (step, vm) => {
    // A VM of the server's own: nobody has told it anything.
    const isSpare = vm?.phase === 'asleep' && vm.wakes.length === 0
    if (isSpare && ['loaded', 'restored', 'rehearse', 'pause', 'resume'].includes(step)) moments.push(`${step} ${network.suspended.has(vm.spec.id) ? 'cut off' : 'connected'}`)
  }
  await app.fork('cold')
  const [ready] = await app.spares(1)
  t.same(moments, ['loaded connected', 'restored connected', 'loaded cut off', 'restored cut off', 'rehearse cut off', 'pause cut off'], 'the first two are of the fork that found none ready')
  const [id = ''] = await app.fork('warm')
  host.onStep = undefined
  t.equal(await wayOf(app, id), 'spare')
  t.equal(moments[6], 'resume connected')
  t.notOk(network.suspended.has(id))
  const place = network.addressOf(id)
  t.equal(ready?.rehearsedNetwork?.mac, place?.mac, 'it has rehearsed with the address that it keeps')
  t.match(ready?.wakes, [{ hostname: 'warm', network: { mac: place?.mac, address: `${place?.ip}/24` } }])
  t.not(place?.ip, network.addressOf(app.id)?.ip)
})

t.test('a fork that was kept ready has the policy that its source has now, before its guest goes on', async (t) => {
  const { host, egress } = hostWith(t)
  const app = await copied(t, { host, fields: asked })
  await app.fork('cold')
  const [ready] = await app.spares(1)
  t.notOk(egress.policies.has(ready?.spec.id ?? ''), 'it has none as long as it is nobody\'s')
  t.equal((await app.call('PATCH', '/instances/web', { env: { SECRET: 'another-value-1' } })).status, 200)
  let isEnforced = false
  host.onStep = (step, vm) => { if (step === 'resume') isEnforced = egress.policies.has(vm?.spec.id ?? '') }
  const [id = ''] = await app.fork('warm')
  host.onStep = undefined
  t.equal(await wayOf(app, id), 'spare')
  t.ok(isEnforced)
  t.same(JSON.stringify(egress.policies.get(id)?.spec), JSON.stringify(egress.policies.get(app.id)?.spec))
  t.notMatch(JSON.stringify(egress.policies.get(id)?.spec), new RegExp(REAL))
})

t.test('a name that is taken leaves the fork that is kept ready as it was', async (t) => {
  const app = await copied(t)
  await app.fork('cold')
  const [ready] = await app.spares(1)
  await t.rejects(app.fork('web'), { code: 'name_conflict' })
  t.match(ready, { state: { status: 'paused' }, phase: 'asleep', wakes: [] })
  const [id] = await app.fork('warm')
  t.equal(ready?.spec.id, id)
})

t.test('a fork that is kept ready and has died is no hindrance', async (t) => {
  const app = await copied(t)
  await app.fork('cold')
  const [ready] = await app.spares(1)
  ready?.set({ status: 'gone' })
  const [id = ''] = await app.fork('warm')
  t.equal(await wayOf(app, id), 'copy')
  await app.spares(1)
  await tidied(app)
})

t.test('a guest that cannot rehearse to be woken serves as it is', async (t) => {
  const app = await copied(t)
  app.host.failures.set('rehearse', Object.assign(new Error('this guest is awake already'), { code: 'guest_refused' }))
  await app.fork('cold')
  const [ready] = await app.spares(1)
  t.equal(ready?.rehearsals, 0)
  const [id] = await app.fork('warm')
  t.equal(ready?.spec.id, id)
  t.notOk(app.lines.some(({ level }) => level === 'warn' || level === 'error'))
})

for (const step of ['loaded', 'restored', 'rehearse', 'pause'] as const) {
  t.test(`a fork that fails at "${step}" of being made ready leaves nothing, and no other is tried for a while`, async (t) => {
    const app = await copied(t)
    let left = step === 'loaded' || step === 'restored' ? 2 : 1
    app.host.onStep = (now) => { if (now === step && --left === 0) throw new Error('the VMM refuses') }
    await app.fork('cold')
    await until(() => app.lines.some(({ msg }) => String(msg) === 'a spare VM could not be made; none is tried for a while'))
    app.host.onStep = undefined
    await tidied(app)
    t.equal(alive(app).length, 3)
    const [id = ''] = await app.fork('next')
    t.equal(await wayOf(app, id), 'copy')
    t.equal(asleep(app.host.vms).length, 0)
  })
}

for (const step of ['resume', 'resumePort'] as const) {
  t.test(`a fork that was kept ready and fails at "${step}" is given up for another one`, async (t) => {
    const { host } = hostWith(t)
    const app = await copied(t, { host, fields: { network: { enabled: true } } })
    await app.fork('cold')
    const [ready] = await app.spares(1)
    host.onStep = (now) => {
      if (now !== step) return
      host.onStep = undefined
      throw new Error('it refuses')
    }
    const [id = ''] = await app.fork('warm')
    t.equal(await wayOf(app, id), 'copy')
    t.match(ready, { state: { status: 'gone' }, wakes: [] })
    await app.spares(1)
    await tidied(app)
    t.equal(host.held.size, 3)
  })
}

t.test('forks that are kept ready end with their copy, as does the one that is being made', async (t) => {
  const app = await copied(t)
  const { copies, files, host } = app
  await app.fork('a', 'b')
  await app.spares(2)
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  const reached = new Promise<void>((resolve) => {
    host.onStep = async (step, vm) => {
      if (step !== 'pause' || vm?.phase !== 'asleep') return
      host.onStep = undefined
      resolve()
      await held
    }
  })
  await app.fork('c')
  await reached
  copies.forget(files('one'))
  go()
  await until(() => asleep(host.vms).length === 0)
  await until(async () => (await app.remains()).rows.length === 5)
  t.equal(alive(app).length, 5, 'the source, three forks, and the spare VM of the template')
  await tidied(app)
  t.notOk(app.lines.some(({ level }) => level === 'warn' || level === 'error'))
})

t.test('a copy whose files are gone is forked no more in the background, and nobody hears of it', async (t) => {
  const app = await copied(t, { config: { templates: { quiet: '1s' } } })
  await app.fork('cold')
  await rename(app.files('one').memory.path, `${app.files('one').memory.path}.elsewhere`)
  await new Promise((resolve) => { setTimeout(resolve, 300) })
  t.equal(asleep(app.host.vms).length, 0)
  t.notOk(app.lines.some(({ level }) => level === 'warn' || level === 'error'))
})

t.test('a fork that nobody needs ends', async (t) => {
  const app = await copied(t, { config: { templates: { spareIdle: '300ms' } } })
  await app.fork('cold')
  await app.spares(1)
  await app.spares(0)
  await until(async () => (await app.remains()).rows.length === 2)
  await tidied(app)
  t.equal(alive(app).length, 2)
})

t.test('there are never more VMs kept ready than there may be, whatever they are made of', async (t) => {
  const app = await copied(t, { config: { templates: { maxSpares: 2 } } })
  await app.fork('a', 'b', 'c', 'd')
  await app.spares(2)
  t.equal(await app.count('spares'), 2)
  t.equal(alive(app).length, 7)
})

t.test('what is kept ready takes no VM user from an instance', { skip: process.getuid?.() === 0 ? false : 'VMs have users of their own only when the server is root' }, async (t) => {
  const app = await copied(t, { config: { vmUserCount: 4 } })
  await app.fork('cold')
  await app.spares(1)
  await app.make('second', { size: '512MB' })
  await app.make('third', { size: '512MB' })
  t.equal(asleep(app.host.vms).length, 0)
  t.equal(alive(app).length, 4)
})

t.test('what is kept ready takes no address from an instance', async (t) => {
  const { host, network } = hostWith(t)
  network.capacity = 4
  const app = await copied(t, { host, fields: { network: { enabled: true } } })
  await app.fork('cold')
  await app.spares(1)
  await app.make('second', { network: { enabled: true }, size: '512MB' })
  await app.make('third', { network: { enabled: true }, size: '512MB' })
  t.equal(asleep(host.vms).length, 0)
})

t.test('what is kept ready is given up before guests are asked for memory', async (t) => {
  const app = await copied(t)
  await app.fork('cold')
  await app.spares(1)
  t.equal((await app.call('POST', '/resources/memory/reclaim', { reclaim_bytes: 2 ** 20, dry_run: true })).status, 200)
  await app.spares(1)
  t.equal((await app.call('POST', '/resources/memory/reclaim', { reclaim_bytes: 2 ** 20 })).status, 200)
  t.equal(asleep(app.host.vms).length, 0)
  t.equal(await app.count('spares'), 0)
})

t.test('the server ends the forks that it keeps ready when it ends', async (t) => {
  const app = await copied(t)
  const ids = await app.fork('a', 'b')
  await app.spares(2)
  await app.app.stop()
  t.same(alive(app).map(({ spec }) => spec.id).sort(), [app.id, ...ids].sort())
  t.same((await app.remains()).rows, [app.id, ...ids].sort())
  await tidied(app)
})

interface Without { readonly config?: Record<string, unknown>, prepare? (host: ScriptedHost): void, readonly created?: Record<string, unknown> }

const without: Readonly<Record<string, Without>> = {
  'a server that keeps no VMs ready': { config: { templates: { spares: 0 } } },
  'a driver that keeps no paused VMs': { prepare: (host) => { Object.assign(host.driver.imaging ?? {}, { keepsPaused: false }) } },
  'memory that is plugged in': { created: { hotplugBytes: 2 ** 28 } }
}
for (const [what, { config = {}, prepare, created }] of Object.entries(without)) {
  t.test(`with ${what} every fork is made when it is asked for`, async (t) => {
    const host = new ScriptedHost()
    prepare?.(host)
    const { copies, copy, files } = await copied(t, { host, config })
    const spec = Object(copy.spec)
    await copies.fork({ ...copy, spec: { ...spec, created: { ...spec.created, ...created } } }, files('one'), { name: 'a' })
    await new Promise((resolve) => { setTimeout(resolve, 200) })
    t.equal(asleep(host.vms).length, 0)
  })
}

t.test('forks to Standby and to Stopped ask for no fork to be kept ready', async (t) => {
  const app = await copied(t)
  const { copies, copy, files, host } = app
  await copies.fork(copy, files('one'), { name: 'resting', targetState: 'Standby' })
  await copies.fork(copy, files('one'), { name: 'off', targetState: 'Stopped' })
  await new Promise((resolve) => { setTimeout(resolve, 200) })
  t.equal(asleep(host.vms).length, 0)
})
