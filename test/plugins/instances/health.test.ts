// The health of programs, by commands that are run in the guest again and again.
import t, { type Test } from 'tap'
import { startApp, type StartOptions, type TestApp } from './app.ts'
import { until } from './crash.ts'
import { ScriptedHost } from './scripted.ts'

const check = (fields: Record<string, unknown> = {}): Record<string, unknown> => ({ type: 'exec', interval: '1s', start_period: '0s', failure_threshold: 1, exec: { command: ['/bin/check'] }, ...fields })

const healthOf = async ({ call }: Pick<TestApp, 'call'>): Promise<Record<string, unknown>> => Object((await call('GET', '/instances/web')).body['health_status'])
const has = async (app: Pick<TestApp, 'call'>, status: string): Promise<void> => { await until(async () => (await healthOf(app))['status'] === status) }

/** Whose probes end with what `exitCode` says at the time. */
async function running (t: Test, fields: Record<string, unknown>, options: StartOptions = {}): Promise<TestApp & { probe: { exitCode: number, count: number } }> {
  const host = options.host ?? new ScriptedHost()
  const probe = { exitCode: 0, count: 0 }
  host.onExec = (session) => {
    probe.count++
    session.end({ exitCode: probe.exitCode, signal: 0 })
  }
  const app = await startApp(t, { ...options, host })
  await app.make('web', fields)
  await app.waitFor('web', 'Running')
  return { ...app, probe }
}

t.test('a program is healthy once its probe succeeds, unhealthy once it fails as often as was said, and healthy again', async (t) => {
  const app = await running(t, { health_check: check({ failure_threshold: 2 }) })
  await has(app, 'healthy')
  t.match(app.host.vm.execs[0]?.spec, { argv: ['/bin/check'], cwd: '/', timeoutMs: 2000 })
  app.probe.exitCode = 3
  await has(app, 'unhealthy')
  t.match(await healthOf(app), { consecutive_successes: 0, last_error: 'exit code 3', last_success_at: String, last_failure_at: String })
  t.match(await app.call('GET', '/instances/web'), { body: { state: 'Running', health_check: { type: 'exec', timeout: '2s', success_threshold: 1 } } })
  app.probe.exitCode = 0
  await has(app, 'healthy')
})

t.test('while a program starts, its failures make it not unhealthy', async (t) => {
  const app = await running(t, { health_check: check({ start_period: '1h' }) })
  app.probe.exitCode = 1
  await until(async () => Number((await healthOf(app))['consecutive_failures']) > 0)
  t.match(await healthOf(app), { status: String })
  t.not((await healthOf(app))['status'], 'unhealthy')
})

t.test('nothing is probed in standby, and the next server probes again', async (t) => {
  const app = await running(t, { health_check: check() })
  await has(app, 'healthy')
  await app.call('POST', '/instances/web/standby')
  t.match(await healthOf(app), { status: 'unknown', last_success_at: String })
  const { count } = app.probe
  await new Promise((resolve) => setTimeout(resolve, 1200))
  t.equal(app.probe.count, count)
  await app.call('POST', '/instances/web/restore')
  await has(app, 'healthy')
  t.match(await app.call('POST', '/instances/web/fork', { name: 'twin', from_running: true }), { status: 201, body: { health_check: { type: 'exec' } } })
  await app.app.stop()
  await has(await startApp(t, { host: app.host, dataDir: app.dataDir }), 'healthy')
})

t.test('an unhealthy instance is started again by its policy', async (t) => {
  const app = await running(t, { health_check: check(), restart_policy: { policy: 'on_failure', backoff: '1s' } })
  await has(app, 'healthy')
  app.probe.exitCode = 1
  await until(async () => app.host.vms.length > 1)
  app.probe.exitCode = 0
  await has(app, 'healthy')
  t.match(await app.call('GET', '/instances/web'), { body: { state: 'Running', restart_status: { last_reason: 'health_check_failed', blocked_reason: null } } })
})

t.test('a probe that never ends has failed at its time, and a check can be taken away', async (t) => {
  const app = await running(t, { health_check: check({ timeout: '100ms' }) })
  app.host.onExec = () => {}
  await has(app, 'unhealthy')
  t.match(await healthOf(app), { last_error: /^no end within 100 ms/ })
  const { body } = await app.call('PATCH', '/instances/web', { health_check: { type: 'none' } })
  t.notOk('health_check' in body || 'health_status' in body)
})

const wrong: readonly [Record<string, unknown>, string, RegExp][] = [
  [{ exec: undefined }, 'invalid_health_check', /^health_check.exec: is needed/],
  [{ interval: '1ms' }, 'invalid_health_check', /^health_check.interval: must be 1s to 24h/],
  [{ timeout: 'x' }, 'invalid_health_check', /^health_check.timeout: "x"/],
  [{ exec: { command: [] } }, 'invalid_request', /^health_check.exec.command/],
  [{ type: 'http' }, 'invalid_request', /^health_check.type/]
]
t.test('a check that is none is refused at create and PATCH alike', async (t) => {
  const app = await running(t, {})
  for (const [fields, code, message] of wrong) {
    t.match(await app.call('POST', '/instances', { name: 'other', image: 'test', health_check: check(fields) }), { status: 400, body: { code, message } })
    t.match(await app.call('PATCH', '/instances/web', { health_check: check(fields) }), { status: 400, body: { code, message } })
  }
})
