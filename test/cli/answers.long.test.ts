// `--json` of every command that prints an answer of the API is that answer, by the API's own document: against the real server with the driver that plays VMs, and for what takes
// devices, networks and builders against the real application with those on a scripted host.
import { once } from 'node:events'
import { request } from 'node:http'
import { existsSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { SECTIONS } from '../../cli/catalogue/all.ts'
import { builtInFolder, findBuiltIns } from '../../core/plugins/discover.ts'
import { plugin as ingressPlugin } from '../../plugins/ingress/index.ts'
import { plugin as portsPlugin } from '../../plugins/ports/index.ts'
import { DELETED, REMOVABLE, skipWithout } from '../../setup/structure/deleted.ts'
import { ADMIN_KEY } from '../core/bare-app.ts'
import { eventually } from '../helpers/eventually.ts'
import { withFakeDriver } from '../helpers/fake-driver.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { startTestServer } from '../helpers/server.ts'
import { tar } from '../helpers/tar.ts'
import { startUpstreamRegistry } from '../helpers/upstream-registry.ts'
import { skipReason as noIngress } from '../plugins/ingress/stage.ts'
import { startApp } from '../plugins/instances/app.ts'
import { asked, running as runningBehindProxy } from '../plugins/instances/egress-app.ts'
import { ScriptedHost } from '../plugins/instances/scripted.ts'
import { freePort } from '../helpers/free-port.ts'
import { checkAnswers as check, firstId, type AnswersOfPlugin } from './answers.ts'
import { berth } from './berth.ts'

/** Commands that print what a program, a file or this command itself has to say, and no answer of the API. tree.test.ts names the tests that run them. What `resources reclaim` prints is checked in with-network.ts: it takes a guest that can give memory. */
const OF_THEIR_OWN = [
  'logs', 'events', 'exec', 'cp', 'port-forward', 'builds logs', 'compose up', 'compose plan', 'compose logs', 'compose down', 'doctor', 'version', 'login', 'context ls', 'context use', 'context rm', 'completion',
  'rm', 'image rm', 'snapshot rm', 'snapshot schedule rm', 'volume rm', 'device rm', 'ports rm', 'ingress rm', 'ingress ca', 'webhook rm', 'key rm', 'builds cancel', 'resources reclaim'
]
const checked = new Set<string>()

/** Those whose answer is of a plugin that is here. */
const checkAnswers: typeof check = async (t, server, calls) => {
  const here = calls.filter(({ answers }) => !answers.split('/').some((word) => DELETED.includes(word)))
  for (const { args } of here) checked.add(nameOf(args))
  return await check(t, server, here)
}

/** The longest name of a command that a line begins with. */
function nameOf (args: readonly string[]): string {
  return SECTIONS.flatMap(({ commands }) => commands.map(({ name }) => name)).filter((name) => name.split(' ').every((word, index) => args[index] === word)).sort((a, b) => b.length - a.length)[0] ?? ''
}

const INSTANCE = 'GET /instances/{}'

t.test('of instances, images, volumes, keys, webhooks and the server', async (t) => {
  const server = await startTestServer(t, { plugins: { ...withFakeDriver.plugins, resources: { enabled: true } } })
  const image = await push(server, await busyboxImage(), 'cli/busybox:latest')
  const registry = await startUpstreamRegistry(t)
  const SMALL = ['--size', '128MB', '--vcpus', '1', '--overlay-size', '256MB', '--no-network']
  const sleeping = [image, 'tick']
  await checkAnswers(t, server, [
    { args: ['pull', image], answers: 'GET /images/{}' },
    { args: ['image', 'pull', image], answers: 'GET /images/{}' },
    { args: ['image', 'ls'], answers: 'GET /images' },
    { args: ['image', 'inspect', image], answers: 'GET /images/{}' },
    { args: ['image', 'tag', image, 'localhost/cli/second:v1'], answers: 'POST /images/{}/tag' },
    { args: ['push', image, `${registry.host}/pushed:v1`, '--insecure'], answers: 'GET /pushes/{}' },
    { args: ['volume', 'create', 'data', '--size', '1', '--tag', 'team=a'], answers: 'POST /volumes' },
    { args: ['volume', 'create', 'filled', '--size', '1', '--from-archive', '-'], answers: 'POST /volumes/from-archive', input: gzipSync(tar([{ path: 'a', content: 'b' }])) },
    { args: ['volume', 'ls'], answers: 'GET /volumes' },
    { args: ['volume', 'inspect', 'data'], answers: 'GET /volumes/{}' },
    { args: ['create', ...SMALL, '--name', 'plain', '--tag', 'berth.compose.project=shop', '--tag', 'berth.compose.service=plain', '--tag', 'berth.compose.instance=plain', '--restart', 'on-failure', '--health-cmd', 'true', '-e', 'A=b', ...sleeping], answers: 'POST /instances' },
    { args: ['run', '-d', ...SMALL, '--name', 'web', ...sleeping], answers: 'POST /instances' },
    { args: ['wait', '--state', 'Running', 'web'], answers: 'GET /instances/{}/wait' },
    { args: ['wait', '--state', 'Running', 'plain', 'web'], answers: 'GET /instances/{}/wait', many: true },
    { args: ['ps'], answers: 'GET /instances' },
    { args: ['compose', 'ps', '-p', 'shop'], answers: 'GET /instances' },
    { args: ['inspect', 'web'], answers: INSTANCE },
    { args: ['inspect', 'web', 'plain', '--show-env'], answers: INSTANCE, many: true },
    { args: ['stats', 'web'], answers: 'GET /instances/{}/stats', many: true },
    { args: ['update', 'web', '--ttl', '1h'], answers: 'PATCH /instances/{}' },
    { args: ['stop', 'web'], answers: 'POST /instances/{}/stop' },
    { args: ['volume', 'attach', 'data', 'web', '/srv'], answers: 'POST /instances/{}/volumes/{}' },
    { args: ['volume', 'detach', 'data', 'web'], answers: 'DELETE /instances/{}/volumes/{}' },
    { args: ['start', 'web'], answers: 'POST /instances/{}/start' },
    { args: ['key', 'create', 'ci', '--scope', 'image:read'], answers: 'POST /keys' },
    { args: ['key', 'ls'], answers: 'GET /keys' },
    { args: ['whoami'], answers: 'GET /whoami' },
    { args: ['webhook', 'create', 'https://ci.example.com/hook', '--resource', 'instance'], answers: 'POST /webhooks' },
    { args: ['webhook', 'ls'], answers: 'GET /webhooks' },
    { args: ['resources'], answers: 'GET /resources' },
    { args: ['plugins'], answers: 'GET /plugins' }
  ])
  await checkAnswers(t, server, [{ args: ['webhook', 'inspect', await firstId(server, 'webhook', 'ls')], answers: 'GET /webhooks/{}' }])
})

/** A plugin that need not be there brings its own, as `answers.ts` in the folder of its tests. */
const parts = [...(await findBuiltIns(builtInFolder)).keys()].map((id) => new URL(`../plugins/${id}/answers.js`, import.meta.url)).filter((file) => existsSync(file))
for (const { href } of parts) {
  const { answers }: { answers: AnswersOfPlugin } = await import(href)
  t.test(answers.name, async (t) => { await answers.check(t, checkAnswers) })
}

t.test('of ports and auto-standby', async (t) => {
  const host = new ScriptedHost()
  host.connect()
  const { app, make, waitFor } = await startApp(t, { host, plugins: [portsPlugin], listen: true })
  await make('web', { network: { enabled: true }, auto_standby: { enabled: true, idle_timeout: '1h' } })
  await waitFor('web', 'Running')
  await checkAnswers(t, { url: app.address(), key: ADMIN_KEY }, [
    { args: ['ports', 'add', 'web', '80'], answers: 'POST /instances/{}/ports' },
    { args: ['ports', 'add', 'web', '81', '82/udp'], answers: 'POST /instances/{}/ports', many: true },
    { args: ['ports', 'ls'], answers: 'GET /ports' },
    { args: ['ports', 'ls', 'web'], answers: 'GET /instances/{}/ports' },
    { args: ['auto-standby', 'hold', 'web'], answers: 'POST /instances/{}/auto-standby/hold' },
    { args: ['auto-standby', 'status', 'web'], answers: 'GET /instances/{}/auto-standby/status' }
  ])
})

t.test('of ingresses', { skip: noIngress() }, async (t) => {
  const host = new ScriptedHost()
  const network = host.connect()
  // Its guests have addresses of this machine's loopback, where nobody listens.
  network.namespace = '/proc/self/ns/net'
  const port = await freePort('127.0.0.1')
  const { app, make, waitFor } = await startApp(t, { host, plugins: [ingressPlugin], listen: true, sections: { ingress: { config: { listen: { address: '127.0.0.1', http: [port] }, limits: { workers: 1, connections: 64 } } } }, server: { stopInstancesOnExit: true } })
  const id = await make('web')
  await waitFor('web', 'Running')
  const address = network.addressOf(id)
  if (address === undefined) throw new Error('no address')
  network.addresses.set(id, { ...address, ip: '127.0.0.2' })
  const server = { url: app.address(), key: ADMIN_KEY }
  await checkAnswers(t, server, [
    { args: ['ingress', 'create', 'site', 'web.test=web:9'], answers: 'POST /ingresses' },
    { args: ['ingress', 'ls'], answers: 'GET /ingresses' },
    { args: ['ingress', 'inspect', 'site'], answers: 'GET /ingresses/{}' }
  ])
  await eventually('a request is in the log', async () => {
    await text((await once(request({ port, headers: { host: 'web.test' } }).end(), 'response'))[0])
    return (await berth(['ingress', 'log', 'web', '--json'], { env: { BERTH_URL: server.url, BERTH_TOKEN: server.key } })).out.includes('web.test')
  })
  await checkAnswers(t, server, [{ args: ['ingress', 'log', 'web'], answers: 'GET /instances/{}/ingress', field: 'entries' }])
})

t.test('of what went out', { skip: skipWithout('egress') }, async (t) => {
  const { app, egress, id } = await runningBehindProxy(t, asked, { listen: true })
  egress.entries.push({ seq: 1, time: new Date().toISOString(), vm: id, revision: 1, protocol: 'h2', host: 'api.example.com', port: 443, method: 'GET', path: '/', status: 200, injected: ['TOKEN'], bytesIn: 1, bytesOut: 2, durationMs: 3 })
  await checkAnswers(t, { url: app.address(), key: ADMIN_KEY }, [{ args: ['egress', 'web'], answers: 'GET /instances/{}/egress', field: 'entries' }])
})

t.test('all commands are among them but those that print no answer', { skip: skipWithout(...REMOVABLE) }, async (t) => {
  const all = SECTIONS.flatMap(({ commands }) => commands.map(({ name }) => name))
  t.strictSame(all.filter((name) => !checked.has(name) && !OF_THEIR_OWN.includes(name)), noIngress() === false ? [] : all.filter((name) => name.startsWith('ingress')))
  t.strictSame(OF_THEIR_OWN.filter((name) => !all.includes(name) || checked.has(name)), [])
})
