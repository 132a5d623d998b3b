// The registry on a connection that says who is at its other end.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import type { RegistryChannel, RegistryGrant } from '../../../plugins/registry/contract.ts'
import { duplexPair } from '../../helpers/duplex-pair.ts'
import { KEY, startImagesApp, temporaryFolder, type ImagesApp } from '../../helpers/images-app.ts'
import { pushLayout, writeLayout } from '../../helpers/oci.ts'
import { tar } from '../../helpers/tar.ts'

const commands = createHostCommands()
const OCTETS = 'application/octet-stream'

function open (t: Test, app: ImagesApp, grant: RegistryGrant): RegistryChannel {
  const channel = app.registry.open(grant)
  t.teardown(() => { channel.revoke() })
  return channel
}

function connect (channel: RegistryChannel): Duplex {
  const [near, far] = duplexPair()
  channel.serve(far)
  return near
}

interface Answer { readonly status: number, readonly headers: IncomingHttpHeaders, readonly text: string }

async function ask (channel: RegistryChannel, method: string, path: string, body?: Buffer | string, headers: Record<string, string> = {}): Promise<Answer> {
  const sent = httpRequest({ createConnection: () => connect(channel), host: 'registry', method, path, headers })
  sent.end(body)
  const [response] = await once(sent, 'response')
  return { status: response.statusCode, headers: response.headers, text: await text(response) }
}

/** Pushes a blob and a manifest of it. Returns the digest of the blob. */
async function push (channel: RegistryChannel, repository: string, content: string, mount = ''): Promise<{ readonly digest: string, readonly mounted: boolean }> {
  const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`
  const start = await ask(channel, 'POST', `/v2/${repository}/blobs/uploads/${mount.replace('DIGEST', digest)}`)
  if (start.status === 201) return { digest, mounted: true }
  const location = new URL(start.headers.location ?? '', 'http://registry')
  location.searchParams.set('digest', digest)
  const stored = await ask(channel, 'PUT', location.pathname + location.search, content, { 'content-type': OCTETS })
  if (stored.status !== 201) throw new Error(`the blob was answered with ${start.status} and ${stored.status} ${stored.text}`)
  return { digest, mounted: false }
}

/** A port of loopback that leads to the channel, for programs that know ports only. */
async function portOf (t: Test, channel: RegistryChannel): Promise<string> {
  const server = createServer({ allowHalfOpen: true }, (socket) => { channel.serve(socket) })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close() })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `127.0.0.1:${address.port}`
}

t.test('skopeo pushes and pulls through it without a key, and the image is there as after any push', async (t) => {
  const app = await startImagesApp(t)
  const channel = open(t, app, { read: [], write: ['builds/a'] })
  const host = await portOf(t, channel)
  const folder = await temporaryFolder(t)
  const layout = await writeLayout(join(folder, 'l'), [{ layers: [tar([{ path: 'f', content: 'built' }])], config: { Cmd: ['x'] } }])
  await pushLayout(layout, `${host}/builds/a:latest`, { username: '', password: '' })
  t.match(await app.settled('localhost/builds/a:latest'), { status: 'ready', digest: layout.digest, cmd: ['x'] })
  t.match(await app.settled(`${app.host}/builds/a:latest`), { digest: layout.digest })
  t.equal((await app.request('GET', `/images/${encodeURIComponent(`${host}/builds/a:latest`)}`)).status, 404, 'what the client calls the host is no name of it')
  await commands.run('skopeo', ['copy', '--quiet', '--src-tls-verify=false', `docker://${host}/builds/a:latest`, `oci:${join(folder, 'back')}:image`])
  await t.rejects(pushLayout(layout, `${host}/builds/b:latest`, { username: '', password: '' }), { message: /403|denied/i })
})

t.test('a repository outside of the grant is refused, whether it exists or not, and nobody deletes', async (t) => {
  const app = await startImagesApp(t)
  const all = open(t, app, { read: 'all', write: ['secret/one', 'open/one', 'own'] })
  const { digest } = await push(all, 'secret/one', 'hidden')
  await push(all, 'open/one', 'shown')
  const channel = open(t, app, { read: ['open/one'], write: ['own'] })
  for (const path of ['/v2', '/v2/']) t.match(await ask(channel, 'GET', path), { status: 200, headers: { 'docker-distribution-api-version': 'registry/2.0' } })
  const calls: ReadonlyArray<readonly [method: string, path: string, status: number]> = [
    ['GET', `/v2/secret/one/blobs/${digest}`, 403],
    ['HEAD', `/v2/secret/one/blobs/${digest}`, 403],
    ['GET', '/v2/secret/none/tags/list', 403],
    ['GET', `/v2/own/blobs/${digest}`, 404],
    ['GET', `/v2/open/one/blobs/${digest}`, 404],
    ['HEAD', '/v2/own/manifests/latest', 404],
    ['POST', '/v2/open/one/blobs/uploads/', 403],
    ['PUT', '/v2/open/one/manifests/latest', 403],
    ['POST', '/v2/own/blobs/uploads/', 202],
    ['POST', '/v2/own/extra/blobs/uploads/', 403],
    ['DELETE', `/v2/own/blobs/${digest}`, 403],
    ['DELETE', `/v2/own/manifests/${digest}`, 403],
    ['GET', '/v2/_catalog', 403],
    ['GET', '/v2/token', 404],
    ['GET', '/images', 404],
    ['GET', '/v2/own/../secret/one/tags/list', 404],
    ['GET', 'http://registry/v2/own/tags/list', 404],
    ['PUT', '/v2/', 404]
  ]
  for (const [method, path, status] of calls) t.equal((await ask(channel, method, path)).status, status, `${method} ${path}`)
  t.match(JSON.parse((await ask(channel, 'GET', '/v2/secret/none/tags/list')).text), { errors: [{ code: 'DENIED' }] })
  t.equal((await ask(all, 'GET', `/v2/secret/one/blobs/${digest}`)).text, 'hidden', 'whoever may read all reads it')
})

t.test('a blob of another repository is taken over only if that may be read', async (t) => {
  const app = await startImagesApp(t)
  const source = open(t, app, { read: 'all', write: ['from/open', 'from/closed'] })
  const { digest } = await push(source, 'from/open', 'shared')
  await push(source, 'from/closed', 'kept back')
  const channel = open(t, app, { read: ['from/open'], write: ['own'] })
  t.match(await push(channel, 'own', 'shared', '?mount=DIGEST&from=from/open'), { mounted: true })
  const closed = `sha256:${createHash('sha256').update('kept back').digest('hex')}`
  const wishes = [`?mount=${closed}&from=from/closed`, `?from=from/closed&mount=${closed}&from=from/open`, `?mount=${closed}&from=from%2Fclosed`, `?x=1;from=from/closed&mount=${closed}&from=from/open`]
  for (const wish of wishes) t.equal((await ask(channel, 'POST', `/v2/own/blobs/uploads/${wish}`)).status, 202, wish)
  const form = `mount=${encodeURIComponent(closed)}&from=from/closed`
  t.equal((await ask(channel, 'POST', '/v2/own/blobs/uploads/', form, { 'content-type': 'application/x-www-form-urlencoded' })).status, 400, 'the store reads forms too')
  t.equal((await ask(channel, 'GET', `/v2/own/blobs/${closed}`)).status, 404)
  t.equal((await ask(channel, 'GET', `/v2/own/blobs/${digest}`)).status, 200)
})

t.test('many requests follow one another on one connection, and none comes before the last one is answered', async (t) => {
  const app = await startImagesApp(t)
  const channel = open(t, app, { read: 'all', write: [] })
  const steady = connect(channel)
  steady.setEncoding('utf8')
  for (let round = 0; round < 50; round++) {
    steady.write('GET /v2/ HTTP/1.1\r\nHost: x\r\n\r\n')
    const [chunk] = await once(steady, 'data')
    t.match(chunk, /^HTTP\/1\.1 200 /)
  }
  const hasty = connect(channel)
  hasty.resume()
  const closed = once(hasty, 'end')
  hasty.write('GET /v2/a/tags/list HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1000))
  await closed
  t.equal((await ask(channel, 'GET', '/v2/')).status, 200, 'others go on')
})

t.test('headers without end, nonsense, and a client that never closes end the connection alone', async (t) => {
  const app = await startImagesApp(t)
  const channel = open(t, app, { read: 'all', write: [] })
  for (const bad of [`GET /v2/ HTTP/1.1\r\nHost: x\r\n${'x: y\r\n'.repeat(20_000)}`, 'nonsense\r\n\r\n', `GET /${'a'.repeat(100_000)} HTTP/1.1\r\n`, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n']) {
    const connection = connect(channel)
    const answer = text(connection)
    connection.write(bad)
    t.match(await answer, /^HTTP\/1\.1 4\d\d /, bad.slice(0, 20))
  }
  const refused = connect(channel)
  const answer = text(refused)
  refused.write('PATCH /v2/a/blobs/uploads/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n')
  t.match(await answer, /^HTTP\/1\.1 403 [\s\S]*DENIED/, 'it is told at once, and not at the end of its body')
  t.equal((await ask(channel, 'GET', '/v2/')).status, 200)
})

t.test('what is revoked serves nothing more, and ends what is under way', async (t) => {
  const app = await startImagesApp(t)
  const channel = app.registry.open({ read: [], write: ['own'] })
  const other = open(t, app, { read: 'all', write: [] })
  const start = await ask(channel, 'POST', '/v2/own/blobs/uploads/')
  const upload = connect(channel)
  const end = once(upload, 'end')
  upload.resume()
  const { pathname, search } = new URL(start.headers.location ?? '', 'http://registry')
  upload.write(`PATCH ${pathname}${search} HTTP/1.1\r\nHost: x\r\nContent-Type: ${OCTETS}\r\nContent-Length: 1000000\r\n\r\nbegin`)
  const idle = connect(channel)
  const idleEnd = once(idle, 'end')
  idle.resume()
  channel.revoke()
  channel.revoke()
  t.same(await Promise.all([end, idleEnd]), [[], []])
  const late = connect(channel)
  late.resume()
  t.same(await once(late, 'end'), [])
  t.equal((await ask(other, 'GET', '/v2/')).status, 200)
})

t.test('its names are those that mean it', async (t) => {
  const app = await startImagesApp(t, { registry: { hosts: ['registry.example:5000'] } })
  const names = app.registry.names()
  t.equal(names[0], app.host)
  t.ok(['localhost', `localhost:${app.host.split(':')[1] ?? ''}`, 'registry.example:5000'].every((name) => names.includes(name)), names.join())
  for (const name of names) t.ok(app.registry.isLocal(name), name)
  t.notOk(app.registry.isLocal('127.0.0.1:1'))
  t.equal((await fetch(`${app.url}/v2/`, { headers: { authorization: `Bearer ${KEY}` } })).status, 200)
})
