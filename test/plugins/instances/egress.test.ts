// Instances whose way out is mediated, on a scripted host: whose policy is enforced after each operation, and after each failure.
import t from 'tap'
import { GUEST_BUNDLE } from '../../../plugins/guest/trust-environment.ts'
import { startApp } from './app.ts'
import { until } from './crash.ts'
import { asked, enforced, hostWith, REAL, rows, running, start, unavailable } from './egress-app.ts'
import { ScriptedHost, type ImagingStep } from './scripted.ts'
import { EgressUnavailable } from './scripted-egress.ts'
import { alive, startWithTemplates } from './templates-app.ts'

t.test('a mediated instance has its policy before it runs, and trusts the authority', async (t) => {
  const { call, egress, host, id, network } = await running(t)
  t.same([...egress.policies.keys()], [id])
  t.equal(egress.policies.get(id)?.address, network.addresses.get(id)?.ip)
  t.equal(egress.valueOf(id, 'SECRET'), REAL)
  t.equal(network.ports.get(id)?.egress, 'all')
  t.same(host.vm.workload?.trust, { certificate: 'CERTIFICATE', subjectHash: '0123abcd', bundle: 'BUNDLE' })
  t.match(host.vm.workload?.env, { PLAIN: 'x', TOKEN: 'mock-TOKEN', FROM_IMAGE: 'yes', SSL_CERT_FILE: GUEST_BUNDLE })
  t.notHas(host.vm.workload?.env, 'SECRET')
  const { body } = await call('GET', '/instances/web')
  t.same(body['env'], { PLAIN: 'x', TOKEN: 'mock-TOKEN' })
  t.same(Object.keys(Object(body['network'])).sort(), ['enabled', 'ip', 'mac', 'name'])
  t.notHas(body, 'credentials')
})

t.test('the paths of the authority replace what an image says, and not what its user says', async (t) => {
  const host = new ScriptedHost()
  host.mediate()
  host.image = { ...host.image, env: { SSL_CERT_FILE: '/image.pem', CURL_CA_BUNDLE: '/image.pem' } }
  const { make, waitFor } = await startApp(t, { host })
  await make('web', { env: { CURL_CA_BUNDLE: '/own.pem' }, network: { egress: { enabled: true } } })
  await waitFor('web', 'Running')
  t.match(host.vm.workload?.env, { SSL_CERT_FILE: GUEST_BUNDLE, CURL_CA_BUNDLE: '/own.pem' })
})

t.test('a credential is of its shape whatever its name is', async (t) => {
  const { call } = await start(t)
  for (const name of ['A\n', 'A\u2028B', '\n']) {
    const credentials = { [name]: null }
    const refused = { status: 400, body: { code: 'invalid_request', message: /^credentials/ } }
    t.match(await call('POST', '/instances', { name: 'web', image: 'test', network: { egress: { enabled: true } }, credentials }), refused)
    t.match(await call('POST', '/egress/try', { url: 'https://x.example', credentials }), refused)
    t.match(await call('POST', '/instances', { name: 'web', image: 'test', env: { [name]: null } }), { status: 400, body: { code: 'invalid_request', message: /^env/ } })
  }
})

t.test('an instance that goes directly out has neither policy nor authority', async (t) => {
  const app = await start(t)
  for (const [index, network] of [undefined, { egress: { enabled: false, enforcement: { mode: 'all' } } }, { enabled: false }].entries()) {
    await app.make(`web-${index}`, { env: { SECRET: REAL }, ...network === undefined ? {} : { network } })
    await app.waitFor(`web-${index}`, 'Running')
    t.notOk(app.host.vm.workload?.trust)
    t.same(app.host.vm.workload?.env, { FROM_IMAGE: 'yes', SECRET: REAL })
  }
  t.same(app.egress.calls, ['adopt '], 'the proxy is asked for nothing')
})

t.test('without the plugin egress a mediated way out is refused, and an instance of before says what it needs', async (t) => {
  const app = await running(t)
  await app.call('POST', '/instances/web/stop')
  await app.app.stop()
  app.host.egress = undefined
  const { call } = await startApp(t, { host: app.host, dataDir: app.dataDir })
  t.match(await call('POST', '/instances', { name: 'other', image: 'test', ...asked }), { status: 400, body: { code: 'plugin_disabled', message: /^network.egress needs the plugin egress/ } })
  t.match(await call('POST', '/instances/web/start'), { status: 400, body: { code: 'plugin_disabled', message: /egress/ } })
  t.equal((await call('GET', '/instances/web/egress')).status, 404, 'the route is not there')
  t.equal((await call('DELETE', '/instances/web')).status, 204)
})

t.test('the policy is enforced while a VM is', async (t) => {
  const app = await running(t)
  const { call, host, id } = app
  const does = async (path: string): Promise<string[]> => {
    t.equal((await call('POST', `/instances/web/${path}`)).status, 200, path)
    return enforced(app)
  }
  t.same(await does('stop'), [])
  t.same(await does('start'), [id])
  await app.waitFor('web', 'Running')
  await does('standby')
  await until(async () => enforced(app).length === 0)
  t.same(await does('restore'), [id])
  await host.vm.exit()
  await app.waitFor('web', 'Stopped')
  t.same(enforced(app), [])
  await does('start')
  t.equal((await call('DELETE', '/instances/web')).status, 204)
  t.same(enforced(app), [])
})

for (const state of ['Running', 'Standby', 'Stopped'] as const) {
  t.test(`a fork of an instance in ${state} has the policy of its source under its own address`, async (t) => {
    const app = await running(t)
    const { call, egress, host, network } = app
    if (state === 'Standby') await call('POST', '/instances/web/standby')
    if (state === 'Stopped') await call('POST', '/instances/web/stop')
    const { body } = await call('POST', '/instances/web/fork', { name: 'twin', from_running: true, target_state: 'Running' })
    const twin = String(body['id'])
    t.same(body['env'], { PLAIN: 'x', TOKEN: 'mock-TOKEN' })
    t.equal(egress.policies.get(twin)?.address, network.addresses.get(twin)?.ip)
    t.equal(egress.valueOf(twin, 'SECRET'), REAL)
    await app.waitFor('twin', 'Running')
    if (state === 'Stopped') t.ok(host.vm.workload?.trust)
    t.equal((await call('DELETE', '/instances/twin')).status, 204)
    t.same(enforced(app), state === 'Running' ? [app.id] : [])
  })
}

t.test('a fork that does not run has no policy until it does', async (t) => {
  const app = await running(t)
  const { body } = await app.call('POST', '/instances/web/fork', { name: 'twin', from_running: true, target_state: 'Standby' })
  t.same(enforced(app), [app.id])
  t.equal((await app.call('POST', '/instances/twin/restore')).status, 200)
  t.same(enforced(app), [app.id, String(body['id'])].sort())
})

const failing: readonly ImagingStep[] = ['authority', 'enforce', 'enforced']
for (const step of failing) {
  t.test(`a create that fails at "${step}" leaves nothing, and can be repeated`, async (t) => {
    const app = await start(t)
    app.host.failures.set(step, EgressUnavailable())
    t.match(await app.call('POST', '/instances', { name: 'web', image: 'test', overlay_size: '32MB', ...asked }), unavailable)
    t.same([enforced(app), [...app.network.ports.keys()], [...app.network.addresses.keys()], await rows(app), [...app.host.held]], [[], [], [], [], []])
    app.host.failures.clear()
    await app.make('web', asked)
  })

  for (const [name, before] of [['start', 'stop'], ['restore', 'standby']] as const) {
    t.test(`a ${name} that fails at "${step}" leaves the instance as it was`, async (t) => {
      const app = await running(t)
      await app.call('POST', `/instances/web/${before}`)
      const { state } = (await app.call('GET', '/instances/web')).body
      app.host.failures.set(step, EgressUnavailable())
      t.match(await app.call('POST', `/instances/web/${name}`), unavailable)
      t.match((await app.call('GET', '/instances/web')).body, { state })
      t.same([enforced(app), [...app.network.ports.keys()], [...app.network.addresses.keys()]], [[], [], [app.id]])
      app.host.failures.clear()
      t.equal((await app.call('POST', `/instances/web/${name}`)).status, 200)
      t.same(enforced(app), [app.id])
    })
  }

  t.test(`a fork that fails at "${step}" leaves nothing, and its source goes on`, async (t) => {
    const app = await running(t)
    app.host.failures.set(step, EgressUnavailable())
    t.match(await app.call('POST', '/instances/web/fork', { name: 'twin', from_running: true }), unavailable)
    t.same([enforced(app), [...app.network.addresses.keys()], await rows(app)], [[app.id], [app.id], [app.id]])
    t.match((await app.call('GET', '/instances/web')).body, { state: 'Running' })
  })
}

for (const step of ['launch', 'launched'] as const) {
  t.test(`a create that fails at "${step}" lifts its policy`, async (t) => {
    const app = await start(t)
    app.host.failures.set(step, new Error('no'))
    t.equal((await app.call('POST', '/instances', { name: 'web', image: 'test', overlay_size: '32MB', ...asked })).status, 500)
    t.same([enforced(app), [...app.network.addresses.keys()], await rows(app)], [[], [], []])
  })
}

t.test('a standby is answered before its VM is disconnected, and what comes next waits for that', async (t) => {
  const app = await running(t)
  const { call, host, id } = app
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  host.onStep = async (step) => { if (step === 'lift' || step === 'unplug') await held }
  t.match(await call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby' } })
  t.same(enforced(app), [id])
  const restored = call('POST', '/instances/web/restore')
  const order = app.egress.calls.length
  await new Promise((resolve) => { setImmediate(resolve) })
  t.equal(app.egress.calls.length, order, 'nothing is enforced meanwhile')
  go()
  t.match(await restored, { status: 200, body: { state: 'Running' } })
  t.same(enforced(app), [id])
  t.same(app.egress.calls.slice(-2), [`lift ${id}`, `enforce ${id}`])
})

t.test('a server that stops has disconnected what is in standby', async (t) => {
  const app = await running(t)
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  app.host.onStep = async (step) => { if (step === 'unplug') await held }
  await app.call('POST', '/instances/web/standby')
  let isHeld = true
  // Long after a server that waits for nothing has stopped.
  setTimeout(() => {
    isHeld = false
    go()
  }, 500)
  await app.app.stop()
  t.notOk(isHeld)
  t.same([[...app.network.ports.keys()], enforced(app)], [[], []])
})

t.test('a delete right after a standby releases the address once all is over', async (t) => {
  const app = await running(t)
  await app.call('POST', '/instances/web/standby')
  t.equal((await app.call('DELETE', '/instances/web')).status, 204)
  t.same([enforced(app), [...app.network.ports.keys()], [...app.network.addresses.keys()]], [[], [], []])
})

t.test('a spare VM gets the rules and the policy of its instance before it goes on', async (t) => {
  const { host, network, egress } = hostWith(t)
  const app = await startWithTemplates(t, { host })
  await app.warmUp()
  const spare = host.vm
  t.equal(network.ports.get(spare.spec.id)?.egress, 'none')
  const id = await app.make('second', asked)
  t.equal(await app.wayOf(id), 'from a spare VM')
  t.equal(network.ports.get(id)?.egress, 'all')
  t.equal(egress.policies.get(id)?.address, network.addresses.get(id)?.ip)
  await app.waitFor('second', 'Running')
  t.ok(spare.workload?.trust)
  t.match(spare.workload?.env, { TOKEN: 'mock-TOKEN' })
  await until(async () => await app.count('spares') === 1)
})

for (const step of ['authority', 'enforce', 'enforced'] as const) {
  t.test(`a spare VM that fails at "${step}" ends, and nothing is left`, async (t) => {
    const { host, network, egress } = hostWith(t)
    const app = await startWithTemplates(t, { host })
    const first = await app.warmUp()
    host.failures.set(step, EgressUnavailable())
    t.match(await app.call('POST', '/instances', { name: 'second', image: 'test', overlay_size: '32MB', ...asked }), unavailable)
    t.same([[...egress.policies.keys()], [...network.addresses.keys()], (await app.remains()).rows], [[], [first], [first]])
    t.equal(alive(app).length, 1)
  })
}

t.test('a spare VM whose rules cannot be changed is given up for another way', async (t) => {
  const { host, network, egress } = hostWith(t)
  const app = await startWithTemplates(t, { host })
  const first = await app.warmUp()
  host.failures.set('setEgress', new Error('no'))
  const id = await app.make('second', asked)
  t.equal(await app.wayOf(id), 'from a template')
  t.same([...egress.policies.keys()], [id])
  t.ok(network.addresses.has(first))
})

t.test('a guest that waits for its workload gets it once the authority is known', async (t) => {
  const { host } = hostWith(t)
  host.behaviour = 'boot-only'
  const before = await startApp(t, { host })
  await before.make('web', asked)
  await before.app.stop()
  host.behaviour = 'run'
  host.failures.set('authority', EgressUnavailable())
  const after = await startApp(t, { host, dataDir: before.dataDir })
  t.match((await after.call('GET', '/instances/web')).body, { state: 'Initializing' })
  host.failures.clear()
  t.match((await after.waitFor('web', 'Running')).body, { state: 'Running' })
  t.ok(host.vm.workload?.trust)
})

t.test('what runs keeps its policy over a restart of the server, and nobody else has one', async (t) => {
  const app = await running(t)
  const other = await app.make('direct')
  await app.waitFor('direct', 'Running')
  await app.make('resting', asked)
  await app.waitFor('resting', 'Running')
  await app.call('POST', '/instances/resting/standby')
  await app.app.stop()
  app.egress.policies.set('gone', { address: '10.1.0.99', spec: { mode: 'all', credentials: {}, sealed: {} } })
  app.egress.calls.length = 0
  await startApp(t, { host: app.host, dataDir: app.dataDir })
  t.same(app.egress.calls.filter((call) => !call.startsWith('lift')), [`adopt ${app.id}`])
  t.same(enforced(app), [app.id])
  t.notOk(enforced(app).includes(other))
})
