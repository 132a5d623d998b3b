// The health of programs, by commands that are run in the guest again and again.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { startApp, type StartOptions, type TestApp } from './app.ts'
import { startAway } from './away.ts'
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

t.test('a database that is away as a program becomes unhealthy does not keep it from being started again', async (t) => {
  const host = new ScriptedHost()
  let exitCode = 0
  host.onExec = (session) => { session.end({ exitCode, signal: 0 }) }
  const app = await startAway(t, { host })
  await app.make('web', { health_check: check(), restart_policy: { policy: 'on_failure', backoff: '1s' } })
  await app.waitFor('web', 'Running')
  await has(app, 'healthy')
  app.go('not done')
  exitCode = 1
  await until(async () => host.vms.length > 1)
  exitCode = 0
  await has(app, 'healthy')
  t.match(await app.call('GET', '/instances/web'), { body: { state: 'Running', restart_status: { last_reason: 'health_check_failed' } } })
})

t.test('a probe that never ends has failed at its time, and a check can be taken away', async (t) => {
  const app = await running(t, { health_check: check({ timeout: '100ms' }) })
  app.host.onExec = () => {}
  await has(app, 'unhealthy')
  t.match(await healthOf(app), { last_error: /^no end within 100 ms/ })
  const { body } = await app.call('PATCH', '/instances/web', { health_check: { type: 'none' } })
  t.notOk('health_check' in body || 'health_status' in body)
})

/** A guest whose port 80 is this server's, and which has others on which nobody listens. */
async function serving (t: Test, serve: (socket: Socket) => void): Promise<ScriptedHost> {
  const server = createServer(serve)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close() })
  const port = Number(Object(server.address()).port)
  const host = new ScriptedHost()
  host.onConnect = async (asked) => {
    if (asked !== 80) return undefined
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return socket
  }
  return host
}

const answering = (head: string) => (socket: Socket): void => {
  socket.on('error', () => {})
  socket.once('data', () => { socket.end(`HTTP/1.1 ${head}\r\n\r\n`) })
}

t.test('a program is healthy while its port is open', async (t) => {
  const app = await running(t, { health_check: { type: 'tcp', tcp: { port: 80 }, interval: '1s', start_period: '0s', failure_threshold: 1 } }, { host: await serving(t, (socket) => { socket.on('error', () => {}) }) })
  await has(app, 'healthy')
  t.match(await app.call('GET', '/instances/web'), { body: { health_check: { type: 'tcp', tcp: { port: 80 } } } })
  t.match(await app.call('PATCH', '/instances/web', { health_check: { type: 'tcp', tcp: { port: 81 }, interval: '1s', start_period: '0s', failure_threshold: 1 } }), { status: 200 })
  await has(app, 'unhealthy')
  t.match(await healthOf(app), { last_error: 'nobody listens on port 81' })
})

t.test('a program is healthy while it answers with the status that is expected', async (t) => {
  let head = '200 OK'
  const seen: string[] = []
  const host = await serving(t, (socket) => {
    socket.once('data', (bytes: Buffer) => { seen.push(bytes.toString()) })
    answering(head)(socket)
  })
  const app = await running(t, { health_check: { type: 'http', http: { port: 80, path: '/ready?all=1' }, interval: '1s', start_period: '0s', failure_threshold: 1 } }, { host })
  await has(app, 'healthy')
  t.match(seen[0], /^GET \/ready\?all=1 HTTP\/1.1\r\nhost: localhost:80\r\n/i)
  head = '503 No'
  await has(app, 'unhealthy')
  t.match(await healthOf(app), { last_error: 'status 503' })
  await app.call('PATCH', '/instances/web', { health_check: { type: 'http', http: { port: 80, expected_status: 503 }, interval: '1s', start_period: '0s', failure_threshold: 1 } })
  await has(app, 'healthy')
  t.match(await app.call('GET', '/instances/web'), { body: { health_check: { type: 'http', http: { port: 80, path: '/', scheme: 'http', expected_status: 503 } } } })
})

const hostile: ReadonlyArray<readonly [string, (socket: Socket) => void, RegExp]> = [
  ['says nothing', () => {}, /^no answer within 300 ms/],
  ['ends at once', (socket) => { socket.destroy() }, /socket hang up|ECONNRESET/],
  ['speaks something else', (socket) => { socket.write('SSH-2.0-x\r\n') }, /Parse Error/],
  ['has headers without end', (socket) => { socket.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}`) }, /Header overflow/],
  ['has early answers without end', (socket) => {
    const more = setInterval(() => { socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100)) }, 1)
    socket.once('close', () => { clearInterval(more) })
  }, /^no answer within 300 ms/]
]
for (const [name, serve, error] of hostile) {
  t.test(`a program that ${name} is unhealthy, and the server notices nothing`, async (t) => {
    const host = await serving(t, (socket) => {
      socket.on('error', () => {})
      socket.resume()
      serve(socket)
    })
    const app = await running(t, { health_check: { type: 'http', http: { port: 80 }, interval: '1h', timeout: '300ms', start_period: '0s', failure_threshold: 1 } }, { host })
    await has(app, 'unhealthy')
    t.match(String((await healthOf(app))['last_error']), error)
  })
}

const wrong: readonly [Record<string, unknown>, string, RegExp][] = [
  [{ exec: undefined }, 'invalid_health_check', /^health_check.exec: is needed/],
  [{ interval: '1ms' }, 'invalid_health_check', /^health_check.interval: must be 1s to 24h/],
  [{ timeout: 'x' }, 'invalid_health_check', /^health_check.timeout: "x"/],
  [{ exec: { command: [] } }, 'invalid_request', /^health_check.exec.command/],
  [{ type: 'http' }, 'invalid_health_check', /^health_check.http: is needed with type http/],
  [{ type: 'tcp' }, 'invalid_health_check', /^health_check.tcp: is needed with type tcp/],
  [{ type: 'udp' }, 'invalid_request', /^health_check.type/],
  [{ type: 'tcp', tcp: { port: 0 } }, 'invalid_request', /^health_check.tcp.port/],
  [{ type: 'http', http: { port: 80, path: '/a b' } }, 'invalid_request', /^health_check.http.path/]
]
t.test('a check that is none is refused at create and PATCH alike', async (t) => {
  const app = await running(t, {})
  for (const [fields, code, message] of wrong) {
    t.match(await app.call('POST', '/instances', { name: 'other', image: 'test', health_check: check(fields) }), { status: 400, body: { code, message } })
    t.match(await app.call('PATCH', '/instances/web', { health_check: check(fields) }), { status: 400, body: { code, message } })
  }
})
