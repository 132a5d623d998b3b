// Commands against the real server with a real VM that has a network. Run by with-network.long.test.ts in a network namespace of its own.
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { createHostCommands } from '../../core/process/run.ts'
import { version } from '../../core/version.ts'
import { DELETED, skipWithout } from '../../setup/structure/deleted.ts'
import { eventually } from '../helpers/eventually.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { ownNetwork } from '../helpers/own-network.ts'
import { startTestServer } from '../helpers/server.ts'
import { skipReason } from '../plugins/ingress/stage.ts'
import { freePort } from '../helpers/free-port.ts'
import { checkAnswers } from './answers.ts'
import { berth as plain, type Ended } from './berth.ts'

const reason = skipReason()
if (reason !== false) {
  t.plan(0, reason)
  process.exit()
}
const { run } = createHostCommands()
const { namespace, cidr } = ownNetwork()
t.teardown(async () => { if (existsSync(`/run/netns/${namespace}`)) await run('ip', ['netns', 'delete', namespace]) })
// What counts for this host is the way from its loopback; outside there is nobody.
await run('ip', ['-batch', '-'], { input: 'link set lo up\nlink add wan type veth peer name outside\nlink set outside up\naddress add 198.51.100.1/24 dev wan\nlink set wan up\n' })
const http = await freePort('127.0.0.1')
const server = await startTestServer(t, {
  plugins: {
    networking: { config: { uplink: 'wan', namespace, cidr } },
    ingress: { config: { listen: { address: '127.0.0.1', http: [http] } } },
    resources: { enabled: true },
    instances: { config: { reclaim: { floorSize: '64MB' } } }
  }
})
const image = await push(server, await busyboxImage(), 'cli/busybox:latest')
const berth = async (...args: readonly string[]): Promise<Ended> => await plain(args, { env: { BERTH_URL: server.url, BERTH_TOKEN: server.key } })
const SMALL = ['--size', '128MB', '--vcpus', '1', '--overlay-size', '256MB']
const field = async (name: string): Promise<string> => (await berth('inspect', 'web', '--format', `{{${name}}}`)).out.trim()

/** What the program in the VM serves, by a port of this host. */
async function served (port: number, headers: Readonly<Record<string, string>> = {}): Promise<{ status: number | undefined, body: string }> {
  const [response] = await once(request({ host: '127.0.0.1', port, headers, agent: false }).end(), 'response') as [IncomingMessage]
  return { status: response.statusCode, body: await text(response) }
}
const SERVED = { status: 200, body: 'served\n' }

t.test('version tells the command\'s and the server\'s', async (t) => {
  const { code, out } = await berth('version')
  t.equal(code, 0)
  t.equal(out.split(version).length, 3, out)
})

t.test('run gives a program its variables, a volume and a port of the host', { skip: skipWithout('volumes') }, async (t) => {
  t.match(await berth('volume', 'create', 'shelf', '--size', '1'), { code: 0 })
  const port = await freePort('127.0.0.1')
  t.match(await berth('run', '-d', ...SMALL, '--name', 'shop', '-e', 'GREETING=hello', '-v', 'shelf:/shelf', '-p', `${port}:80`, image, 'sh', '-c', 'mkdir /srv; echo $GREETING > /shelf/word; cp /shelf/word /srv/index.html; grep -c " /shelf ext4 " /proc/mounts > /srv/mounts; httpd -f -p 80 -h /srv'), { code: 0 })
  await eventually('the program is served', async () => await served(port).then(({ body }) => body === 'hello\n', () => false))
  t.strictSame(await served(port), { status: 200, body: 'hello\n' })
  t.match((await berth('exec', 'shop', 'cat', '/srv/mounts')).out, '1')
  t.match(await berth('rm', '-f', 'shop'), { code: 0 })
  t.match(await berth('volume', 'rm', 'shelf'), { code: 0 })
})

t.test('a published port leads to the program, is listed, and leads nowhere once it is taken away', async (t) => {
  t.match(await berth('run', '-d', ...SMALL, '--name', 'web', '--auto-standby', '1h', image, 'sh', '-c', 'mkdir /srv; echo served > /srv/index.html; httpd -p 80 -h /srv; touch /tmp/ready; while :; do sleep 1; done'), { code: 0 })
  t.match(await berth('wait', '--state', 'Running', 'web'), { code: 0 })
  t.match(await berth('exec', '--wait', '60s', 'web', 'sh', '-c', 'until [ -e /tmp/ready ]; do sleep 0.2; done'), { code: 0 })
  const { code, out, error } = await berth('ports', 'add', 'web', '80')
  t.equal(code, 0, error)
  const port = Number(/^127\.0\.0\.1:(\d+)->80\/tcp\n$/.exec(out)?.[1])
  t.match((await berth('ports', 'ls', 'web')).out, `127.0.0.1:${port}->80/tcp`)
  t.strictSame(await served(port), SERVED)
  t.match(await berth('standby', 'web'), { code: 0 })
  t.strictSame(await served(port), SERVED, 'the connection wakes it')
  t.equal(await field('state'), 'Running')
  t.match(await berth('ports', 'rm', 'web', String(port)), { code: 0, out: `${port}\n` })
  t.match(await berth('ports', 'ls', 'web', '-q'), { code: 0, out: '' })
  await t.rejects(served(port), { code: 'ECONNREFUSED' })
})

t.test('an ingress leads to the program by its name, tells its requests, and is deleted', async (t) => {
  t.match(await berth('ingress', 'create', 'site', 'web.test=web:80'), { code: 0 })
  t.match((await berth('ingress', 'ls')).out, `http://web.test:${http}->web:80`)
  t.match(JSON.parse((await berth('ingress', 'inspect', 'site')).out), { name: 'site', served: true })
  t.strictSame(await served(http, { host: 'web.test' }), SERVED)
  await eventually('the request is told', async () => /GET web\.test.* 200/.test((await berth('ingress', 'log', 'web')).out), { explain: async () => (await berth('ingress', 'log', 'web')).out })
  t.match(await berth('ingress', 'ca'), { code: 0, out: /BEGIN CERTIFICATE/ })
  t.match(await berth('ingress', 'rm', 'site'), { code: 0, out: 'site\n' })
  t.match(await berth('ingress', 'inspect', 'site'), { code: 3 })
})

t.test('an instance says when it goes to standby by itself, is held, and goes', async (t) => {
  t.match(await berth('auto-standby', 'hold', 'web'), { code: 0, out: 'web\n' })
  const status = JSON.parse((await berth('auto-standby', 'status', 'web', '--json')).out) as { configured: boolean, hold_until: string | null }
  t.match(status, { configured: true, hold_until: String })
  t.match(await berth('update', 'web', '--auto-standby', 'off'), { code: 0 })
  t.match(await berth('auto-standby', 'status', 'web'), { code: 0, out: /policy_(?:missing|disabled)/ })
  t.match(await berth('run', '-d', ...SMALL, '--name', 'sleeper', '--auto-standby', '2s', image, 'sh', '-c', 'while :; do sleep 1; done'), { code: 0 })
  t.match(await berth('wait', '--state', 'Standby', '--timeout', '3m', 'sleeper'), { code: 0, out: 'sleeper\n' })
  t.match(await berth('rm', 'sleeper'), { code: 0, out: 'sleeper\n' })
})

t.test('memory is taken from a guest that runs, and given back', async (t) => {
  const GIVEN = /^NAME +STATUS +HAS +IS LEFT +HAS GIVEN\nweb +(\w+) +128 MiB +(\S+ \S+) +(\S+ \S+)\n$/
  t.match(await berth('resources', 'reclaim', '--dry-run', '24MB'), { code: 0, out: /^NAME .*\nweb +planned +128 MiB +104 MiB +0 B\n$/ })
  const taken = await berth('resources', 'reclaim', '24MB', '--hold-for', '10m', '--reason', 'test')
  t.match(taken, { code: 0, out: GIVEN })
  await eventually('the guest has given it', async () => (JSON.parse((await berth('resources', 'reclaim', '24MB', '--hold-for', '10m', '--json')).out) as { applied_reclaim_bytes: number }).applied_reclaim_bytes === 24 * 2 ** 20)
  t.match(await berth('exec', 'web', 'echo', 'still here'), { code: 0, out: 'still here\n' })
  await checkAnswers(t, server, [{ args: ['resources', 'reclaim', '24MB', '--hold-for', '10m'], answers: 'POST /resources/memory/reclaim' }])
  t.match(await berth('resources', 'reclaim', '0'), { code: 0 })
  await eventually('it has everything again', async () => (JSON.parse((await berth('resources', 'reclaim', '0', '--json')).out) as { applied_reclaim_bytes: number }).applied_reclaim_bytes === 0)
  t.match(await berth('resources', 'reclaim', 'much'), { code: 2, error: /^berth: much is no size; / })
  if (!DELETED.includes('resources')) t.match((await berth('resources')).out, /^memory /m)
})

t.test('what is no program has 126 and what is not there 127, by exec and by run', async (t) => {
  t.match(await berth('exec', 'web', '/etc/passwd'), { code: 126, error: /./ })
  t.match(await berth('exec', 'web', '/nosuch'), { code: 127, error: /./ })
  t.match(await berth('exec', 'web', 'sh', '-c', 'kill -9 $$'), { code: 137 })
  t.match(await berth('exec', 'nosuch', 'true'), { code: 125, error: /nosuch/ })
  t.match(await berth('run', '--rm', ...SMALL, image, '/etc/passwd'), { code: 126 })
  t.match(await berth('run', '--rm', ...SMALL, image, '/nosuch'), { code: 127 })
  t.match(await berth('run', '--rm', ...SMALL, `${new URL(server.url).host}/cli/nosuch:latest`, 'true'), { code: 125 })
})

t.test('what was made is deleted by name, and one that is not there does not keep the others', { skip: skipWithout('snapshots', 'volumes') }, async (t) => {
  t.match(await berth('snapshot', 'schedule', 'set', 'web', '--interval', '1h', '--max-count', '2'), { code: 0 })
  t.match(await berth('snapshot', 'schedule', 'get', 'web'), { code: 0 })
  t.match(await berth('snapshot', 'schedule', 'rm', 'web'), { code: 0 })
  t.match(await berth('snapshot', 'schedule', 'get', 'web'), { code: 3 })
  t.match(await berth('snapshot', 'create', 'web', '--name', 'kept'), { code: 0 })
  t.match(await berth('exec', 'web', 'touch', '/tmp/later'), { code: 0 })
  t.match(await berth('stop', 'web'), { code: 0 })
  t.match(await berth('volume', 'create', 'data', '--size', '1'), { code: 0 })
  t.match(await berth('volume', 'attach', 'data', 'web', '/data'), { code: 0 })
  t.match(await berth('volume', 'rm', 'data', 'nosuch'), { code: 5, error: /data/ }, 'one that is attached stays')
  t.match(await berth('start', 'web'), { code: 0 })
  t.match(await berth('exec', '--wait', '60s', 'web', 'sh', '-c', 'mount | grep -c " /data "'), { code: 0, out: '1\n' })
  t.match(await berth('stop', 'web'), { code: 0 })
  t.match(await berth('volume', 'detach', 'data', 'web'), { code: 0 })
  t.match(await berth('volume', 'rm', 'nosuch', 'data'), { code: 3, out: 'data\n', error: /nosuch/ })
  const kept = (await berth('snapshot', 'ls', '-q')).out.trim()
  t.match(await berth('snapshot', 'restore', 'web', kept), { code: 0 })
  t.match(await berth('wait', '--state', 'Running', 'web'), { code: 0 })
  t.match(await berth('exec', '--wait', '60s', 'web', 'test', '-e', '/tmp/later'), { code: 1, out: '' }, 'it is what it was')
  t.match(await berth('snapshot', 'fork', kept, 'third'), { code: 0 })
  t.match(await berth('rm', '-f', 'third', 'web'), { code: 0, out: 'third\nweb\n' })
  t.match(await berth('snapshot', 'rm', kept), { code: 0 })
  const hook = (await berth('webhook', 'create', 'https://ci.example.com/hook', '--format', '{{id}}')).out.trim()
  t.match(await berth('webhook', 'rm', hook), { code: 0, out: `${hook}\n` })
  t.match(await berth('webhook', 'ls', '-q'), { code: 0, out: '' })
  const key = JSON.parse((await berth('key', 'create', 'ci', '--scope', 'image:read', '--json')).out) as { id: string, key: string }
  t.match(await plain(['image', 'ls', '-q'], { env: { BERTH_URL: server.url, BERTH_TOKEN: key.key } }), { code: 0 })
  t.match(await berth('key', 'rm', key.id), { code: 0, out: `${key.id}\n` })
  t.match(await plain(['image', 'ls'], { env: { BERTH_URL: server.url, BERTH_TOKEN: key.key } }), { code: 4 }, 'it ends at once')
  t.match(await berth('image', 'tag', image, 'localhost/cli/second:v1'), { code: 0 })
  t.match(await berth('image', 'rm', 'localhost/cli/second:v1', 'nosuch'), { code: 3, out: 'localhost/cli/second:v1\n', error: /nosuch/ })
  t.notMatch((await berth('image', 'ls', '-q')).out, /cli\/second/)
})
