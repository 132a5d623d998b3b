// Published ports, ingresses and auto-standby by the command, against the real application on a scripted host.
import { X509Certificate } from 'node:crypto'
import t from 'tap'
import { ruleOf } from '../../../cli/commands/ingress-create.ts'
import { plugin as ingressPlugin } from '../../../plugins/ingress/index.ts'
import { plugin as portsPlugin } from '../../../plugins/ports/index.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { skipReason } from '../../plugins/ingress/stage.ts'
import { startApp, type TestApp } from '../../plugins/instances/app.ts'
import { ScriptedHost } from '../../plugins/instances/scripted.ts'
import { freePort } from '../../helpers/free-port.ts'
import { berth as plain, type Ended } from '../berth.ts'

function commandFor ({ app }: TestApp): (args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<Ended> {
  return async (args, env = {}) => await plain(args, { env: { BERTH_URL: app.address(), BERTH_TOKEN: ADMIN_KEY, ...env } })
}

t.test('ports are published, listed by name, and taken away by what people know them by', async (t) => {
  const host = new ScriptedHost()
  host.connect()
  const app = await startApp(t, { host, plugins: [portsPlugin], listen: true })
  const berth = commandFor(app)
  await app.make('web')
  await app.make('dns')
  const port = await freePort('127.0.0.1')
  t.match(await berth(['ports', 'add', 'web', `${port}:80`]), { code: 0, out: `127.0.0.1:${port}->80/tcp\n` })
  t.match(await berth(['ports', 'add', 'dns', `127.0.0.1:${port}:53/udp`, '53']), { code: 0, out: new RegExp(`^127\\.0\\.0\\.1:${port}->53/udp\n127\\.0\\.0\\.1:\\d+->53/tcp\n$`) })
  t.match(await berth(['ports', 'add', 'dns', `${port}:80`, '81', 'x:82']), { code: 2, error: /port: x:82 is not \[\[ADDRESS:\]PORT:\]INSTANCE_PORT/ }, 'nothing is published when one of them cannot be read')
  t.match(await berth(['ports', 'add', 'dns', `${port}:80`, '82']), { code: 5, out: /->82\/tcp\n$/, error: /is published for instance web already/ }, 'one that is taken does not keep the other from its result')
  t.match((await berth(['ports', 'ls'])).out, new RegExp(`web +127\\.0\\.0\\.1:${port}->80/tcp +`))
  t.equal((await berth(['ports', 'ls', 'dns', '-q'])).out.trim().split('\n').length, 3)
  t.match(await berth(['ps']), { code: 0, out: new RegExp(`web .*127\\.0\\.0\\.1:${port}->80/tcp`) })
  t.match(await berth(['ports', 'rm', 'dns', `${port}/tcp`]), { code: 3, error: new RegExp(`dns has no published port ${port}/tcp; berth ports ls dns`) })
  t.match(await berth(['ports', 'rm', 'dns', `${port}/udp`]), { code: 0, out: `${port}/udp\n` })
  const [id] = (await berth(['ports', 'ls', 'web', '-q'])).out.trim().split('\n')
  t.match(await berth(['ports', 'rm', 'web', id ?? '']), { code: 0 })
  t.match(await berth(['ports', 'ls', 'web', '--json']), { code: 0, out: '[]\n' })
  await berth(['ports', 'add', 'web', `${port}:53/udp`, `${port}:53/tcp`])
  t.match(await berth(['ports', 'rm', 'web', String(port)]), { code: 5, error: /several ports of web; write it with/ })
  t.match(await berth(['ports', 'ls', 'nosuch']), { code: 3 })
})

t.test('ingresses are made of short rules, listed with the reason why they are not served, and deleted', { skip: skipReason() }, async (t) => {
  const host = new ScriptedHost()
  // The guests of this network are nowhere, so any will do.
  host.connect().namespace = '/proc/self/ns/net'
  const [http, https] = [await freePort('127.0.0.1'), await freePort('127.0.0.1')]
  const app = await startApp(t, { host, plugins: [ingressPlugin], listen: true, sections: { ingress: { config: { listen: { address: '127.0.0.1', http: [http], https: [https] }, limits: { workers: 1, connections: 64 } } } }, server: { stopInstancesOnExit: true } })
  const berth = commandFor(app)
  await app.make('web')
  t.match(await berth(['ingress', 'create', 'site', 'site.test=web:80', `site.test:${http}/api=web:3000`, '{instance}.preview.test={instance}:8080', '--tag', 'team=a']), { code: 0, out: /^[a-z0-9]{24}\n$/ })
  const site = JSON.parse((await berth(['ingress', 'inspect', 'site'])).out) as { rules: unknown }
  t.match(site, { tags: { team: 'a' }, rules: [{ match: { hostname: 'site.test', port: http }, target: { instance: 'web', port: 80 }, tls: false }, { match: { path: '/api' }, target: { port: 3000 } }, { match: { hostname: '{instance}.preview.test' }, target: { instance: '{instance}' } }] })
  t.match(await berth(['ingress', 'create', 'safe', 'safe.test=web:80', '--tls', '--redirect-http', '--header-auth', 'X-Key=SECRET'], { SECRET: 's3cret'.repeat(8) }), { code: 0 })
  t.match(JSON.parse((await berth(['ingress', 'inspect', 'safe'])).out), { rules: [{ tls: true, redirect_http: true, request_header_auth: { header: 'x-key', value: '********' } }] })
  const { out } = await berth(['ingress', 'ls'])
  t.match(out, new RegExp(`site +http://site\\.test:${http}->web:80, http://site\\.test:${http}/api->web:3000, `))
  t.match(out, new RegExp(`safe +https://safe\\.test:${https}->web:80 `))
  t.equal((await berth(['ingress', 'ls', '--tag', 'team=a', '--format', '{{name}}'])).out, 'site\n')
  t.match(await berth(['ingress', 'create', 'site', 'other.test=web:80']), { code: 5, error: /site/ })
  t.match(await berth(['ingress', 'create', 'two', 'site.test=web:80']), { code: 5, error: /ingress site/ })
  t.match(await berth(['ingress', 'create', 'two', 'site.test']), { code: 2, error: /site\.test is not HOST\[:PORT\]\[\/PATH\]=INSTANCE:PORT; write it like/ })
  t.match(await berth(['ingress', 'create', 'two', 'two.test=web:80', '--header-auth', 'X-Key=UNSET']), { code: 2, error: /the variable UNSET is not set here/ })
  t.match(await berth(['ingress', 'log', 'web', '--json']), { code: 0, out: '[]\n' })
  t.match(await berth(['ingress', 'log', 'web', '--tail', '5']), { code: 0, out: /^TIME +CLIENT +REQUEST +STATUS/ })
  const { out: pem } = await berth(['ingress', 'ca'])
  t.match(new X509Certificate(pem).subject, /^CN=Berth ingress /)
  t.match(await berth(['ingress', 'rm', 'site', 'nosuch', 'safe']), { code: 3, out: 'site\nsafe\n', error: /nosuch/ })
  t.equal((await berth(['ingress', 'ls', '-q'])).out, '')
})

t.test('auto-standby says what keeps an instance awake, and holds it', async (t) => {
  const host = new ScriptedHost()
  host.connect()
  const app = await startApp(t, { host, listen: true })
  const berth = commandFor(app)
  await app.make('web', { network: { enabled: true }, auto_standby: { enabled: true, idle_timeout: '1h' } })
  await app.make('plain')
  await app.waitFor('web', 'Running')
  await app.waitFor('plain', 'Running')
  const held = await berth(['auto-standby', 'hold', 'web'])
  t.match(held, { code: 0, out: 'web\n' })
  t.match(await berth(['auto-standby', 'status', 'web']), { code: 0, out: /^STATUS +REASON.*\n[a-z_]+ +[a-z_]+ +0 .* 3600s .*in (?:59 minutes|1 hour)/ })
  const status = JSON.parse((await berth(['auto-standby', 'status', 'web', '--json'])).out) as { hold_until: string, idle_timeout: string }
  t.equal(status.idle_timeout, '3600s')
  t.ok(Date.parse(status.hold_until) > Date.now() + 3_000_000, 'an hour from the call')
  t.match(JSON.parse((await berth(['auto-standby', 'hold', 'web', 'nosuch', '--json'])).out), [{ configured: true }], 'a list, also when only one of them is there')
  t.match(await berth(['auto-standby', 'status', 'plain']), { code: 0, out: /policy_missing/ })
  t.match(await berth(['auto-standby', 'hold', 'nosuch']), { code: 3 })
})

t.test('JSON of several arguments is one list, and of one the thing itself', async (t) => {
  const app = await startApp(t, { listen: true })
  const berth = commandFor(app)
  await app.make('one')
  await app.make('two')
  await Promise.all(['one', 'two'].map(async (name) => await app.waitFor(name, 'Running')))
  const { code, out } = await berth(['stop', 'one', 'nosuch', 'two', '--json'])
  t.equal(code, 3)
  t.match(JSON.parse(out), [{ name: 'one' }, { name: 'two' }])
  t.match(JSON.parse((await berth(['start', 'one', '--json'])).out), { name: 'one' })
  t.equal((await berth(['start', 'two', 'one', '--format', 'jsonl'])).out.trimEnd().split('\n').length, 1, 'that one runs already')
})

t.test('a rule that cannot be read is refused before the server is asked', async (t) => {
  for (const rule of ['a.test', 'a.test=web', '=web:80', 'a:b=web:80', 'a:1:2=web:80', 'a=:80', 'a=web:', 'a=web:123456']) t.throws(() => ruleOf(rule), { message: /is not HOST/ }, rule)
  t.strictSame(ruleOf('a.test:8080/x=y=web:80'), { match: { hostname: 'a.test', port: 8080, path: '/x=y' }, target: { instance: 'web', port: 80 } })
})
