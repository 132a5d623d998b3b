// Instances that go to standby by themselves, on a scripted host: what keeps them awake, and what becomes of it when the server ends.
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import type { InboundConnection } from '../../../plugins/networking/contract.ts'
import { Idleness, qualifying } from '../../../plugins/instances/auto-standby/policy.ts'
import { authorization } from '../../core/bare-app.ts'
import { startApp, type StartOptions, type TestApp } from './app.ts'
import { copyOfData, crashAt, until } from './crash.ts'
import { ScriptedHost } from './scripted.ts'
import type { ScriptedNetwork } from './scripted-network.ts'

const idle = (timeout: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({ auto_standby: { enabled: true, idle_timeout: timeout, ...more } })
const connection = (fields: Partial<InboundConnection> = {}): InboundConnection => ({ instanceId: 'x', source: '10.9.0.1', sourcePort: 4000, port: 80, open: true, ...fields })

t.test('an instance is idle from the end of the last connection that counts', async (t) => {
  const idleness = new Idleness()
  const sees = (now: number, connections: InboundConnection[], leases: string[] = [], freeSince?: number): number => {
    idleness.observe({ now, connections, leases, freeSince })
    return idleness.msLeft(100, now)
  }
  t.equal(idleness.msLeft(100, 0), Infinity, 'nobody has looked')
  t.equal(sees(1000, []), 100)
  t.equal(sees(1050, []), 50)
  t.equal(sees(1060, [connection()]), Infinity, 'it is open')
  t.equal(sees(9000, [connection()]), Infinity, 'for however long')
  t.equal(sees(9010, [connection({ open: false })]), 100, 'it is over')
  t.equal(sees(9050, [connection({ open: false })]), 60, 'and is remembered for a while')
  t.equal(sees(9060, [connection({ open: false }), connection({ open: false, sourcePort: 4001 })]), 100, 'another one came and went')
  t.equal(sees(9100, [], ['exec']), Infinity)
  t.equal(sees(9200, [], [], 9190), 100, 'the command has ended')
  t.equal(sees(9300, [], [], 9260), 60, 'another one came and went')
  idleness.lose()
  t.equal(idleness.msLeft(100, 9999), Infinity, 'nobody knows')
  t.equal(sees(10_000, []), 100)
})

t.test('connections of ignored ports and sources count for nothing', async (t) => {
  const all = [connection(), connection({ port: 22 }), connection({ source: '192.168.7.9' }), connection({ source: '192.169.7.9' })]
  t.same(qualifying(all, { ignoredPorts: [22], ignoredSources: ['192.168.0.0/16', 'fd00::/8'] }), [all[0], all[3]])
  t.same(qualifying(all, { ignoredPorts: [], ignoredSources: ['0.0.0.0/0'] }), [])
})

interface Networked extends TestApp { readonly network: ScriptedNetwork, readonly id: string }

async function running (t: Test, fields: Record<string, unknown>, options: StartOptions = {}): Promise<Networked> {
  const host = options.host ?? new ScriptedHost()
  const network = host.connect()
  const app = await startApp(t, { ...options, host })
  const id = await app.make('web', fields)
  await app.waitFor('web', 'Running')
  return { ...app, network, id }
}

const stateOf = async ({ call }: Pick<TestApp, 'call'>): Promise<unknown> => (await call('GET', '/instances/web')).body['state']
const status = async ({ call }: Pick<TestApp, 'call'>): Promise<Record<string, unknown>> => (await call('GET', '/instances/web/auto-standby/status')).body
const sleeps = async (app: Pick<TestApp, 'call'>): Promise<void> => { await until(async () => await stateOf(app) === 'Standby') }

t.test('an instance that nobody uses goes to standby, and counts anew once it is awake', async (t) => {
  const app = await running(t, idle('2s'))
  t.match((await app.call('GET', '/instances/web')).body, { auto_standby: { enabled: true, idle_timeout: '2s' } })
  t.match(await status(app), {
    supported: true, configured: true, enabled: true, eligible: true, status: 'idle_countdown', reason: 'idle_timeout_not_elapsed', active_inbound_connections: 0, kept_awake_by: [],
    tracking_mode: 'conntrack', idle_timeout: '2s', idle_since: String, last_inbound_activity_at: null, next_standby_at: String, countdown_remaining: String, hold_until: null
  })
  await sleeps(app)
  t.match(await status(app), { eligible: false, status: 'ineligible', reason: 'instance_not_running', next_standby_at: null })
  t.match(await app.call('POST', '/instances/web/auto-standby/hold'), { status: 409, body: { code: 'instance_in_standby' } })
  t.equal((await app.call('POST', '/instances/web/restore')).status, 200)
  t.equal(await stateOf(app), 'Running')
  await sleeps(app)
})

t.test('an open connection keeps it awake, and one of an ignored port or source does not', async (t) => {
  const app = await running(t, idle('1s', { ignore_destination_ports: [22], ignore_source_cidrs: ['10.8.0.0/16'] }))
  app.network.connections = [connection({ instanceId: app.id })]
  t.match(await status(app), { status: 'active', reason: 'active_inbound_connections', active_inbound_connections: 1, idle_since: null, last_inbound_activity_at: String })
  await new Promise((resolve) => setTimeout(resolve, 1500))
  t.equal(await stateOf(app), 'Running')
  app.network.connections = [connection({ instanceId: app.id, port: 22 }), connection({ instanceId: app.id, source: '10.8.1.1' }), connection({ instanceId: 'other' })]
  await sleeps(app)
})

t.test('a command, a copy and a followed log keep it awake', async (t) => {
  const app = await running(t, idle('1s'), { listen: true })
  const address = app.app.address()
  const socket = new WebSocket(`${address.replace('http', 'ws')}/instances/web/exec`, { headers: authorization })
  await once(socket, 'open')
  await until(async () => (await status(app))['status'] === 'active')
  t.match(await status(app), { kept_awake_by: ['exec'], active_inbound_connections: 0 })
  await new Promise((resolve) => setTimeout(resolve, 1500))
  t.equal(await stateOf(app), 'Running')
  socket.close()
  await sleeps(app)
})

t.test('while nobody can say what is open, it stays awake', async (t) => {
  const app = await running(t, idle('1s'))
  app.network.connections = new Error('conntrack: no')
  t.match(await status(app), { eligible: true, status: 'error', reason: 'observer_error' })
  await new Promise((resolve) => setTimeout(resolve, 1500))
  t.equal(await stateOf(app), 'Running')
  app.network.connections = []
  await sleeps(app)
})

t.test('a hold keeps it awake for as long as its idle time, over a restart of the server, and ends with a shorter one', async (t) => {
  const app = await running(t, idle('1h'))
  t.match(await app.call('POST', '/instances/web/auto-standby/hold'), { status: 200, body: { status: 'idle_countdown', hold_until: String } })
  await app.call('PATCH', '/instances/web', idle('1s'))
  await app.app.stop()
  const after = await startApp(t, { host: app.host, dataDir: app.dataDir })
  await new Promise((resolve) => setTimeout(resolve, 1500))
  t.equal(await stateOf(after), 'Running')
  t.match(await status(after), { hold_until: String, idle_timeout: '1s' })
  t.equal((await after.call('POST', '/instances/web/auto-standby/hold')).status, 200)
  await sleeps(after)
})

t.test('a caller who comes while it goes gets it awake', async (t) => {
  for (const step of ['slept', 'captured'] as const) {
    await t.test(`a connection once it has ${step}`, async (t) => {
      const app = await running(t, idle('1s'))
      let came = false
      app.host.onStep = (now) => {
        if (now !== step || came) return
        came = true
        app.network.connections = [connection({ instanceId: app.id })]
      }
      await until(async () => came && await stateOf(app) === 'Running')
      // What was begun is taken back first.
      await until(async () => (await status(app))['status'] === 'active')
      t.equal(app.host.vms.length, 1, 'it is the same VM')
      t.equal(app.host.vm.phase, 'running')
    })
  }
  await t.test('a hold', async (t) => {
    const app = await running(t, idle('1s'))
    let holding: ReturnType<typeof app.call> | undefined
    app.host.onStep = (now) => { if (now === 'slept') holding ??= app.call('POST', '/instances/web/auto-standby/hold') }
    await until(async () => holding !== undefined)
    const held = await holding
    t.match(held, { status: 200, body: { hold_until: String } })
    t.equal(await stateOf(app), 'Running')
    t.equal(app.host.vms.length, 1)
  })
})

t.test('a VM that ends while it is asked for the last time whether somebody is connected is Stopped, and never in standby', async (t) => {
  const app = await running(t, idle('1s'))
  const { host, network } = app
  let isCaptured = false
  host.onStep = (step) => { isCaptured ||= step === 'captured' }
  const ask = network.inbound.bind(network)
  network.inbound = async () => {
    if (isCaptured) host.vm.set({ status: 'gone' })
    return await ask()
  }
  await until(async () => ['Standby', 'Stopped'].includes(String(await stateOf(app))))
  t.match((await app.call('GET', '/instances/web')).body, { state: 'Stopped', has_snapshot: false })
  t.equal((await app.call('POST', '/instances/web/restore')).status, 409)
  host.onStep = undefined
  network.inbound = ask
  t.equal((await app.call('POST', '/instances/web/start')).status, 200)
})

t.test('what cannot sleep by itself says why', async (t) => {
  const app = await running(t, {})
  t.match(await status(app), { configured: false, enabled: false, eligible: false, status: 'disabled', reason: 'policy_missing', idle_timeout: null })
  t.match(await app.call('POST', '/instances/web/auto-standby/hold'), { status: 200, body: { status: 'disabled' } })
  await app.call('PATCH', '/instances/web', { auto_standby: { idle_timeout: '5m' } })
  t.match(await status(app), { configured: true, enabled: false, status: 'disabled', reason: 'policy_disabled', idle_timeout: '300s' })
  await app.make('alone', { ...idle('1s'), network: { enabled: false } })
  t.match((await app.call('GET', '/instances/alone/auto-standby/status')).body, { status: 'ineligible', reason: 'network_disabled' })
  const without = await startApp(t)
  await without.make('web', idle('1s'))
  t.match(await status(without), { supported: false, status: 'unsupported', reason: 'unsupported_platform' })
})

t.test('a fork has the policy, and not the hold', async (t) => {
  const app = await running(t, idle('1h'))
  await app.call('POST', '/instances/web/auto-standby/hold')
  t.match(await app.call('POST', '/instances/web/fork', { name: 'twin', from_running: true }), { status: 201, body: { auto_standby: { idle_timeout: '3600s' } } })
  t.match((await app.call('GET', '/instances/twin/auto-standby/status')).body, { enabled: true, hold_until: null })
})

for (const step of ['sleep', 'slept', 'capture', 'captured', 'kill', 'killed'] as const) {
  t.test(`a server that dies at "${step}" leaves an instance that runs or sleeps, and the next one puts it to sleep in its time`, async (t) => {
    const app = await running(t, idle('1s'))
    const after = await crashAt(t, app, step, async () => { await until(async () => await stateOf(app) !== 'Running').catch(() => {}) })
    await sleeps(after)
    t.equal((await after.call('POST', '/instances/web/restore')).status, 200)
    t.equal(await stateOf(after), 'Running')
  })
}

t.test('a clock that is set puts nothing to sleep early', async (t) => {
  const app = await running(t, idle('1h'))
  await status(app)
  const now = Date.now
  t.teardown(() => { Date.now = now })
  Date.now = () => now() + 7_200_000
  t.match(await status(app), { status: 'idle_countdown' })
  await app.call('POST', '/instances/web/auto-standby/hold')
  Date.now = now
  const dataDir = await copyOfData(t, app.dataDir)
  await app.app.stop()
  t.match(await status(await startApp(t, { host: app.host, dataDir })), { status: 'idle_countdown' })
})

const wrong: ReadonlyArray<readonly [Record<string, unknown>, string, RegExp]> = [
  [{ enabled: true }, 'invalid_auto_standby', /^auto_standby.idle_timeout: is needed/],
  [{ enabled: true, idle_timeout: 'soon' }, 'invalid_auto_standby', /^auto_standby.idle_timeout: "soon"/],
  [{ enabled: true, idle_timeout: '10ms' }, 'invalid_auto_standby', /must be 1s to 720h/],
  [{ idle_timeout: '1m', ignore_source_cidrs: ['10.0.0.0/33'] }, 'invalid_auto_standby', /^auto_standby.ignore_source_cidrs.0: "10.0.0.0\/33" is no CIDR/],
  [{ idle_timeout: '1m', ignore_source_cidrs: ['example'] }, 'invalid_auto_standby', /is no CIDR/],
  [{ idle_timeout: '1m', ignore_destination_ports: [0] }, 'invalid_request', /^auto_standby.ignore_destination_ports/]
]
t.test('a policy that is none is refused at create and PATCH alike', async (t) => {
  const app = await running(t, {})
  for (const [policy, code, message] of wrong) {
    t.match(await app.call('POST', '/instances', { name: 'other', image: 'test', auto_standby: policy }), { status: 400, body: { code, message } })
    t.match(await app.call('PATCH', '/instances/web', { auto_standby: policy }), { status: 400, body: { code, message } })
  }
})
