// The API over TLS, with certificates of a real authority and clients that check them.
import { once } from 'node:events'
import { chmod, copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { Agent, get } from 'node:https'
import { connect as connectPlain } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { ConfigError } from '../../../core/config/resolve.ts'
import { createLog } from '../../../core/logging/log.ts'
import { createListener, type Listener } from '../../../core/listener.ts'
import { berth } from '../../cli/berth.ts'
import { eventually } from '../../helpers/eventually.ts'
import { testFolder } from '../../helpers/folder.ts'
import { startTestHttp, type TestHttp } from '../../helpers/http.ts'
import { ADMIN_KEY, bareApp } from '../bare-app.ts'
import { makeAuthority, replaceFile } from './certificates.ts'

const folder = await mkdtemp(join(tmpdir(), 'berth-tls-test-'))
t.teardown(() => rm(folder, { recursive: true, force: true }))
const authority = await makeAuthority(folder)
const first = await authority.issue('first')
const second = await authority.issue('second')
const ca = await readFile(authority.file)

interface Secure extends TestHttp { readonly listener: Listener, readonly port: number, readonly files: { readonly certificate: string, readonly key: string } }

/** A server with routes of the test's own, plain and over TLS, that looks at its files 20 times a second. */
async function secure (t: Test, mount: (app: FastifyInstance) => void = () => undefined, options: { drainTimeout?: string } = {}): Promise<Secure> {
  const http = await startTestHttp(t, mount, options)
  const own = testFolder(t)
  const files = { certificate: join(own, 'server.pem'), key: join(own, 'server.key') }
  await copyFile(first.certificate, files.certificate)
  await copyFile(first.key, files.key)
  const listener = createListener(http.app)
  const log = createLog({ level: 'info', destination: { write: (line) => { http.logged.push(JSON.parse(line)) } } })
  t.teardown(() => listener.close(1000))
  await listener.listen('127.0.0.1:0')
  await listener.listenSecurely('127.0.0.1:0', { files, log, metrics: http.metrics, intervalMs: 50 })
  return { ...http, listener, files, port: Number(new URL(String(listener.secureUrl())).port) }
}

async function handshake (port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', ca, ...options })
  await once(socket, 'secureConnect')
  return socket
}

/** The name in the certificate that a new connection is shown. */
async function nameAt (port: number): Promise<string> {
  const socket = await handshake(port)
  const { CN } = socket.getPeerCertificate().subject
  socket.destroy()
  return String(CN)
}

interface Answer { readonly status: number | undefined, readonly body: string }

async function ask (url: string, agent?: Agent): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    get(url, { ca, agent }, (answer) => {
      let body = ''
      answer.setEncoding('utf8').on('data', (text: string) => { body += text }).once('end', () => resolve({ status: answer.statusCode, body })).once('error', reject)
    }).once('error', reject)
  })
}

t.test('the API answers over TLS beside plain HTTP, from version 1.2 on, as HTTP/1.1', async (t) => {
  const { listener, port } = await secure(t)
  t.match(await ask(`${listener.secureUrl()}/health`), { status: 200, body: '{"status":"ok"}' })
  t.equal((await fetch(`${listener.url()}/health`)).status, 200)
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const socket = await handshake(port, { minVersion: version, maxVersion: version, ALPNProtocols: ['h2', 'http/1.1'] })
    t.match({ version: socket.getProtocol(), protocol: socket.alpnProtocol }, { version, protocol: 'http/1.1' })
    socket.destroy()
  }
  await t.rejects(handshake(port, { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }), { code: /VERSION/ })
  await t.rejects(handshake(port, { ALPNProtocols: ['h2'] }), { code: /APPLICATION_PROTOCOL/ })
  await t.rejects(fetch(`${listener.secureUrl()}/health`), 'a client that does not know the authority')
})

t.test('a new certificate is taken into use as soon as it is there, and open connections stay', async (t) => {
  const { listener, port, files, logged } = await secure(t)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  t.match(await ask(`${listener.secureUrl()}/health`, agent), { status: 200 })
  t.equal(await nameAt(port), 'first')
  await replaceFile(files.key, await readFile(second.key))
  await replaceFile(files.certificate, await readFile(second.certificate))
  await eventually('the second certificate', async () => await nameAt(port) === 'second')
  t.match(await ask(`${listener.secureUrl()}/health`, agent), { status: 200 })
  t.match(logged.filter(({ msg }) => msg === 'the API has a new certificate'), [{ level: 'info' }])
})

t.test('files that do not fit change nothing: one warning and a figure, until they fit', async (t) => {
  const { port, files, logged, metrics } = await secure(t)
  const warnings = (): unknown[] => logged.filter(({ level }) => level === 'warn')
  const unusable = async (): Promise<number | undefined> => (await metrics.getSingleMetric('berth_tls_files_unusable')?.get())?.values[0]?.value
  const whole = await readFile(second.certificate)
  // Half a file, written in place, as a program that is killed leaves it.
  await writeFile(files.certificate, whole.subarray(0, whole.length / 2))
  await eventually('the warning', () => warnings().length === 1)
  t.equal(await nameAt(port), 'first')
  t.equal(await unusable(), 1)
  t.match(warnings(), [{ reason: `server.tls.certificate: ${files.certificate} holds no certificate in PEM` }])
  await replaceFile(files.certificate, whole)
  await eventually('the next warning', () => warnings().length === 2)
  t.match(warnings()[1], { reason: `server.tls.key: ${files.key} is not the key of the certificate in ${files.certificate}` })
  t.equal(await nameAt(port), 'first')
  await replaceFile(files.key, await readFile(second.key))
  await eventually('the second certificate', async () => await nameAt(port) === 'second')
  t.equal(await unusable(), 0)
  await chmod(files.key, 0o644)
  await eventually('the warning about its mode', () => warnings().length === 3)
  t.match(warnings()[2], { reason: /^server\.tls\.key: .* has mode 644/ })
  // Looked at some more times meanwhile; what was warned of is not warned of again.
  const stamp = (await metrics.getSingleMetric('berth_tls_reloads_total')?.get())?.values.map(({ labels, value }) => `${labels['result']} ${value}`)
  t.same(stamp?.sort(), ['ok 1', 'refused 3'])
  t.equal(await nameAt(port), 'second')
  t.notMatch(JSON.stringify(logged), 'PRIVATE')
})

t.test('a stop lets requests over TLS end, and waits for nobody who asks for nothing', { timeout: 100_000 }, async (t) => {
  let release = (): void => undefined
  let arrive = (): void => undefined
  const arrived = new Promise<void>((resolve) => { arrive = resolve })
  const { listener, port } = await secure(t, (app) => {
    app.get('/slow', { config: { scope: null } }, async () => { await new Promise<void>((resolve) => { release = resolve; arrive() }); return 'done' })
  }, { drainTimeout: '90s' })
  const url = String(listener.secureUrl())
  const slow = ask(`${url}/slow`)
  const silent = await handshake(port)
  const greeting = connectPlain(port, '127.0.0.1')
  await once(greeting, 'connect')
  const gone = [once(silent.resume(), 'close'), once(greeting.resume(), 'close')]
  silent.on('error', () => undefined)
  greeting.on('error', () => undefined)
  await arrived
  const closing = listener.close(90_000)
  await Promise.all(gone)
  release()
  t.match(await slow, { status: 200, body: 'done' })
  await closing
  await t.rejects(ask(`${url}/health`))
})

t.test('a stop cuts what does not end over TLS', { timeout: 60_000 }, async (t) => {
  let arrive = (): void => undefined
  const arrived = new Promise<void>((resolve) => { arrive = resolve })
  const { listener } = await secure(t, (app) => {
    app.get('/stuck', { config: { scope: null } }, async () => { arrive(); await new Promise(() => undefined) })
  }, { drainTimeout: '200ms' })
  const stuck = t.rejects(ask(`${listener.secureUrl()}/stuck`))
  await arrived
  await listener.close(200)
  await stuck
})

t.test('a whole server can be reached by TLS alone, by the command, with the authority given or remembered', async (t) => {
  const files = await authority.issue('whole')
  const { app, lines } = await bareApp(t, { server: { dataDir: join(testFolder(t), 'data'), listen: 'none', apiKey: ADMIN_KEY, metrics: { enabled: false }, tls: { listen: '127.0.0.1:0', ...files } } })
  await app.start()
  const url = String(app.secureAddress())
  t.match(url, /^https:\/\/127\.0\.0\.1:\d+$/)
  t.match(lines.find(({ msg }) => msg === 'listening'), { tls: url })
  t.match(app.address(), /^http:\/\/127\.0\.0\.1:\d+$/, 'for the tools of the server itself')
  t.match(await berth(['whoami', '--url', url, '--token', ADMIN_KEY, '--ca', authority.file]), { code: 0 })
  t.match(await berth(['whoami', '--url', url, '--token', ADMIN_KEY]), { code: 6, error: /--ca FILE/ })
  const contexts = join(testFolder(t), 'contexts.json')
  await writeFile(contexts, JSON.stringify({ current: 'own', contexts: { own: { url, token: ADMIN_KEY, ca: String(ca) } } }), { mode: 0o600 })
  t.match(await berth(['whoami'], { env: { BERTH_CONTEXTS: contexts } }), { code: 0 })
})

t.test('a server does not start with files that cannot be used, and says which and why', async (t) => {
  const open = join(testFolder(t), 'open.key')
  await copyFile(first.key, open)
  await chmod(open, 0o604)
  for (const [files, message] of [
    [{ certificate: first.certificate, key: open }, `server.tls.key: ${open} has mode 604: others may read it, or its group may change it (chmod 640)`],
    [{ certificate: first.certificate, key: second.key }, `server.tls.key: ${second.key} is not the key of the certificate in ${first.certificate}`],
    [{ certificate: '/nonexistent/a.pem', key: first.key }, 'server.tls.certificate: /nonexistent/a.pem is not there'],
    [{ certificate: folder, key: first.key }, `server.tls.certificate: ${folder} is not a file`]
  ] as const) {
    const { app } = await bareApp(t, { server: { dataDir: await mkdtemp(join(folder, 'data-')), listen: '127.0.0.1:0', metrics: { enabled: false }, tls: { listen: '127.0.0.1:0', ...files } } })
    await t.rejects(app.start(), { message })
  }
})

t.test('a configuration says which of the keys of TLS is missing', async (t) => {
  const problems = async (server: object): Promise<readonly string[]> => await bareApp(t, { server: { dataDir: join(folder, 'none'), ...server } })
    .then(() => [], (error: unknown) => error instanceof ConfigError ? error.problems : [String(error)])
  t.same(await problems({ listen: 'none' }), ['server.listen can only be none with server.tls.listen'])
  t.same(await problems({ tls: { listen: '127.0.0.1:0', key: '/etc/key' } }), ['server.tls.certificate is required with server.tls.listen'])
  t.same(await problems({ tls: { certificate: '/etc/cert', key: '/etc/key' } }), ['server.tls.certificate needs server.tls.listen', 'server.tls.key needs server.tls.listen'])
  t.match(await problems({ tls: { listen: '127.0.0.1:0', certificate: 'cert.pem', key: '/etc/key' } }), [/server\.tls\.certificate must be an absolute path/])
})
