// A program in a real machine behind names, with TLS from a real ACME authority: reached by curl, a WebSocket client, gRPC, HTTP/2 and a browser, awake and asleep.
// Run by ingress.long.test.ts in a network namespace of its own.
import { spawn } from 'node:child_process'
import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { Client, credentials } from '@grpc/grpc-js'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { packageRoot } from '../../core/package-root.ts'
import { createHostCommands } from '../../core/process/run.ts'
import { eventually } from '../helpers/eventually.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { installedProgram } from '../helpers/installed-program.ts'
import { createMachine, follow } from '../helpers/machine.ts'
import { ownNetwork } from '../helpers/own-network.ts'
import { noPebble, startPebble, type Pebble } from '../helpers/pebble.ts'
import { startTestServer, type TestServer } from '../helpers/server.ts'
import type { TarEntry } from '../helpers/tar.ts'
import { skipReason } from '../plugins/ingress/stage.ts'
import { freePort } from '../helpers/free-port.ts'

const commands = createHostCommands()
const reason = skipReason() || noPebble()

if (reason === false) await t.test('a program in a machine is reached by names with TLS, awake and asleep', { timeout: 900_000 }, reached)
else t.plan(0, reason)

interface Place { readonly server: TestServer, readonly pebble: Pebble, readonly http: number, readonly https: number }

async function reached (t: Test): Promise<void> {
  await commands.run('ip', ['link', 'set', 'lo', 'up'])
  const { namespace, cidr } = ownNetwork()
  t.teardown(async () => { if (existsSync(`/run/netns/${namespace}`)) await commands.run('ip', ['netns', 'delete', namespace]) })
  const [http, https] = await Promise.all([freePort('127.0.0.1'), freePort('127.0.0.1')])
  const pebble = await startPebble(t, { httpPort: http })
  const acme = { directory: pebble.directory, authority: pebble.authority, email: 'admin@example.com', acceptTerms: true }
  const server = await startTestServer(t, {
    plugins: {
      networking: { config: { uplink: 'none', namespace, cidr } },
      ingress: { config: { listen: { address: '127.0.0.1', http: [http], https: [https] }, certificates: { acme } } }
    }
  })
  const place = { server, pebble, http, https }
  const image = await push(server, await busyboxImage({}, await installedProgram(process.execPath), await program()), 'ingress/target:latest')
  const { id } = await createMachine(server, image, { name: 'web', size: '512MB', entrypoint: [], cmd: [process.execPath, '/app/target.js', '8080', 'web'] })
  await follow(server, id, (line) => line.includes('ready'))
  await server.sdk.ingresses.create({
    name: 'site', rules: [
      { match: { hostname: 'web.test' }, target: { instance: 'web', port: 8080 }, tls: true, redirect_http: true },
      { match: { hostname: 'grpc.test' }, target: { instance: 'web', port: 8081 }, tls: true }
    ]
  })
  await eventually('the certificates', async () => (await server.api.call('GET', '/ingresses/site') as { served: boolean }).served)

  await t.test('by curl, over HTTP/1.1 and HTTP/2, and plain HTTP is sent to TLS', async (t) => { await byCurl(t, place) })
  await t.test('by a WebSocket client', async (t) => { await byWebSocket(t, place) })
  await t.test('by a gRPC client', async (t) => { await byGrpc(t, place) })
  await t.test('by a browser, also with a WebSocket', { skip: existsSync('/usr/bin/chromium') ? false : 'the command chromium is missing; install the package chromium' }, async (t) => { await byBrowser(t, place) })
  await t.test('its requests are logged', async (t) => {
    const log = await eventually('lines of the log', async () => {
      const { entries } = await server.api.call('GET', '/instances/web/ingress?limit=1000') as { entries: { host: string, protocol: string, status: number }[] }
      return entries.some(({ protocol }) => protocol === 'HTTP/2.0') && entries
    })
    t.ok(log.some(({ host, protocol, status }) => host === 'web.test' && protocol === 'HTTP/1.1' && status === 200))
  })
  await t.test('asleep, it is woken by the request, which is served, once for all who come', async (t) => { await waking(t, place, id) })
  await t.test('a server that is killed while it wakes one is followed by a server that serves', async (t) => { await killed(t, place, id) })
  await server.sdk.ingresses.delete('site')
  t.match(await ask(place, '/gone').catch((error: unknown) => error), Error, 'nobody has that certificate any more')
}

async function byCurl (t: Test, { pebble, http, https }: Place): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-ingress-test-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  const ca = join(folder, 'root.pem')
  await writeFile(ca, pebble.root)
  const curl = async (...args: string[]): Promise<string> => (await commands.run('curl', ['--silent', '--show-error', '--max-time', '60', '--cacert', ca, '--resolve', `web.test:${https}:127.0.0.1`, '--resolve', `web.test:${http}:127.0.0.1`, '--write-out', ' HTTP/%{http_version} %{http_code} %{redirect_url}', ...args])).stdout
  t.match(await curl('--http1.1', `https://web.test:${https}/one`), /"name":"web".*"url":"\/one".*"x-forwarded-proto":"https".* HTTP\/1\.1 200 $/s)
  t.match(await curl('--http2', `https://web.test:${https}/two`), /"url":"\/two".* HTTP\/2 200 $/s)
  t.match(await curl(`http://web.test:${http}/three`), new RegExp(`308 https://web\\.test:${https}/three$`))
}

async function byWebSocket (t: Test, { pebble, https }: Place): Promise<void> {
  const options = { servername: 'web.test', headers: { host: 'web.test' }, ca: pebble.root }
  const socket = new WebSocket(`wss://127.0.0.1:${https}/`, options)
  await once(socket, 'open')
  socket.send('hello')
  t.equal(String((await once(socket, 'message'))[0]), 'web hello')
  socket.close()
}

async function byGrpc (t: Test, { pebble, https }: Place): Promise<void> {
  const client = new Client(`127.0.0.1:${https}`, credentials.createSsl(Buffer.from(pebble.root)), { 'grpc.ssl_target_name_override': 'grpc.test', 'grpc.default_authority': 'grpc.test' })
  const same = (bytes: Buffer): Buffer => bytes
  try {
    for (const message of ['first', 'second'.repeat(10_000)]) {
      const answer = await new Promise<Buffer | undefined>((resolve, reject) => {
        client.makeUnaryRequest('/echo.Echo/Say', same, same, Buffer.from(message), { deadline: Date.now() + 60_000 }, (error, value) => { if (error === null) resolve(value); else reject(error) })
      })
      t.equal(answer?.toString(), message)
    }
  } finally {
    client.close()
  }
}

async function byBrowser (t: Test, place: Place): Promise<void> {
  const { pebble, https } = place
  const folder = await mkdtemp(join(tmpdir(), 'berth-browser-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true, maxRetries: 20 }) })
  // It trusts authorities of its own alone; so it is told to take a chain with the key of this one, and no other.
  const socket = connectTls({ host: '127.0.0.1', port: https, servername: 'web.test', ca: pebble.root })
  await once(socket, 'secureConnect')
  const issuer = socket.getPeerX509Certificate()?.issuerCertificate ?? new X509Certificate(pebble.root)
  socket.destroy()
  const key = createHash('sha256').update(issuer.publicKey.export({ type: 'spki', format: 'der' })).digest('base64')
  const output: string[] = []
  const browser = spawn('setpriv', ['--pdeathsig', 'KILL', 'chromium',
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', `--user-data-dir=${folder}`, `--ignore-certificate-errors-spki-list=${key}`,
    `--host-resolver-rules=MAP web.test 127.0.0.1:${https}, MAP * ~NOTFOUND`, '--remote-debugging-port=0', 'https://web.test/page'
  ], { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env['PATH'], HOME: folder }, detached: true })
  for (const stream of [browser.stdout, browser.stderr]) stream.setEncoding('utf8').on('data', (words: string) => { output.push(words) })
  try {
    t.equal(await eventually('what the browser tells', async () => await ask(place, '/result'), { limitMs: 120_000, pollMs: 200, explain: () => output.join('') }), 'h2 /from-script web from a browser')
  } finally {
    const ended = once(browser, 'exit')
    // Its own group: the browser is many processes.
    if (browser.pid !== undefined) process.kill(-browser.pid, 'SIGKILL')
    await ended
  }
}

async function waking (t: Test, place: Place, id: string): Promise<void> {
  const { server } = place
  const alone: number[] = []
  const woken: number[] = []
  for (let round = 0; round < 5; round++) {
    await server.sdk.instances.standby('web')
    alone.push(await timed(async () => { await server.sdk.instances.restore('web') }))
    await server.sdk.instances.standby('web')
    woken.push(await timed(async () => { t.match(await ask(place, '/woken'), /"url":"\/woken"/) }))
  }
  const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[2] ?? NaN
  t.comment(`restore alone ${median(alone).toFixed(0)} ms, request to first byte of a sleeper ${median(woken).toFixed(0)} ms: ratio ${(median(woken) / median(alone)).toFixed(2)}`)
  await server.sdk.instances.standby('web')
  const before = await restores(server, id)
  const answers = await Promise.all(Array.from({ length: 200 }, async (_, n) => await ask(place, `/caller-${n}`)))
  t.equal(answers.filter((answer, n) => answer.includes(`"url":"/caller-${n}"`)).length, 200)
  t.equal(await restores(server, id) - before, 1)
}

async function killed (t: Test, place: Place, id: string): Promise<void> {
  const { server } = place
  await server.sdk.instances.standby('web')
  const before = await begun(server, id)
  const cut = Promise.allSettled(Array.from({ length: 20 }, async (_, n) => await ask(place, `/cut-${n}`)))
  await eventually('the restore', async () => await begun(server, id) > before, { pollMs: 1 })
  await server.kill9()
  const outcomes = await cut
  t.ok(outcomes.every((outcome) => outcome.status === 'fulfilled' && /"url"|server that knows this host is away/.test(outcome.value)), JSON.stringify(outcomes.slice(0, 3)))
  await server.restart()
  t.match(await ask(place, '/again'), /"url":"\/again"/, 'the next server serves')
  t.match(await server.api.call('GET', '/instances/web'), { state: 'Running' })
  t.match(await server.api.call('GET', '/ingresses/site'), { served: true })
}

async function ask ({ pebble, https }: Place, path: string): Promise<string> {
  const asked = request({ host: '127.0.0.1', port: https, path, servername: 'web.test', headers: { host: 'web.test' }, ca: pebble.root, agent: false })
  asked.end()
  const [response] = await once(asked, 'response')
  return await text(response)
}

async function restores (server: TestServer, id: string): Promise<number> {
  return (await linesOf(server, id)).filter((line) => line.includes('restore: VM runs')).length
}

async function begun (server: TestServer, id: string): Promise<number> {
  return (await linesOf(server, id)).filter((line) => line.includes('restore')).length
}

async function linesOf (server: TestServer, id: string): Promise<string[]> {
  return (await readFile(join(server.dataDir, 'instances', id, 'operations.log'), 'utf8')).split('\n')
}

async function timed (work: () => Promise<void>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

/** The compiled target of the plugin's tests with the one package that it needs. */
async function program (): Promise<TarEntry[]> {
  const target = fileURLToPath(new URL('../plugins/ingress/programs/target.js', import.meta.url))
  const folder = join(packageRoot, 'node_modules/ws')
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return [
    { path: 'app/package.json', content: '{"type":"module"}' },
    { path: 'app/target.js', content: await readFile(target) },
    ...await Promise.all(files.map(async (file): Promise<TarEntry> => ({ path: `app/node_modules/ws${file.slice(folder.length)}`, content: await readFile(file) })))
  ]
}
