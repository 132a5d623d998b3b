// Pushes that cannot succeed: each ends with an error that a person understands, and leaves nothing behind.
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ImagesApp } from '../../helpers/images-app.ts'
import { pushLayout } from '../../helpers/oci.ts'
import { CLOSED_HOST, LOGIN, startUpstreamRegistry } from '../../helpers/upstream-registry.ts'
import { digestAt, ended, startPushesApp, textLayout, upload } from './app.ts'

/** Pushes, and compares how that ends. */
async function fails (t: Test, app: ImagesApp, body: Parameters<ImagesApp['sdk']['pushes']['create']>[0], error: RegExp): Promise<void> {
  const { id } = await app.sdk.pushes.create(body)
  const push = await ended(app, id)
  t.match(push, { status: 'failed', error, completed_at: String }, body.target)
  t.same(await readdir(join(app.dataDir, 'pushes')), [], 'no file is left')
}

t.test('a login is needed, refused or right', async (t) => {
  const target = await startUpstreamRegistry(t, { login: true })
  const app = await startPushesApp(t)
  await upload(app, await textLayout(t, 'x'), 'app:1')
  const body = { image: 'app:1', target: `${target.host}/app:1` }
  await fails(t, app, body, /refused the login/)
  await fails(t, app, { ...body, credentials: { username: 'user', password: 'wrong' } }, /refused the login/)
  await fails(t, app, { ...body, credentials: { registry_token: 'wrong' } }, /refused the login/)
  const { id } = await app.sdk.pushes.create({ ...body, credentials: LOGIN })
  t.match(await ended(app, id), { status: 'pushed' })
})

t.test('a registry that is down, or takes nothing', async (t) => {
  const app = await startPushesApp(t)
  await upload(app, await textLayout(t, 'x'), 'app:1')
  await fails(t, app, { image: 'app:1', target: `${CLOSED_HOST}/app:1` }, /^the registry of 127\.0\.0\.1:\d+\/app:1 cannot be reached/)
  const readOnly = await serve(t, (request, response) => {
    if (request.url === '/v2/') response.end('{}')
    else response.writeHead(request.method === 'HEAD' ? 404 : 405, { 'content-type': 'application/json' }).end('{"errors":[{"code":"UNSUPPORTED","message":"read only"}]}')
  })
  await fails(t, app, { image: 'app:1', target: `${readOnly}/app:1` }, /^the image could not be pushed to 127\.0\.0\.1:\d+\/app:1 \(/)
})

t.test('plain HTTP and unknown certificates are refused but on loopback, and allowed by insecure', async (t) => {
  const [plain, secure] = await Promise.all([startUpstreamRegistry(t), startUpstreamRegistry(t, { tls: true })])
  const app = await startPushesApp(t)
  const layout = await textLayout(t, 'x')
  await upload(app, layout, 'app:1')
  // The same address by a name that stands for loopback only to those who resolve it.
  const elsewhere = (host: string): string => host.replace('127.0.0.1', 'LOCALHOST')
  for (const [host, error] of [[plain.host, /speaks plain HTTP; set insecure/], [secure.host, /is not trusted; set insecure/]] as const) {
    const body = { image: 'app:1', target: `${elsewhere(host)}/app:1` }
    await fails(t, app, body, error)
    await fails(t, app, { ...body, insecure: false }, error)
    const { id } = await app.sdk.pushes.create({ ...body, insecure: true })
    t.match(await ended(app, id), { status: 'pushed', error: null })
  }
  t.equal(await digestAt(`${plain.host}/app:1`), layout.digest)
})

t.test('an image whose registry no longer has it, or wants a login', async (t) => {
  const [origin, target] = await Promise.all([startUpstreamRegistry(t), startUpstreamRegistry(t)])
  const closed = await startUpstreamRegistry(t, { login: true })
  const app = await startPushesApp(t)
  const names = [`${origin.host}/gone:1`, `${closed.host}/closed:1`]
  for (const name of names) {
    await pushLayout(await textLayout(t, name), name, LOGIN)
    await app.sdk.images.create({ name, credentials: LOGIN })
    await app.settled(name)
  }
  const { digest } = await app.sdk.images.get(String(names[0]))
  t.equal((await fetch(`http://${origin.host}/v2/gone/manifests/${digest}`, { method: 'DELETE' })).status, 202)
  await fails(t, app, { image: String(names[0]), target: `${target.host}/a:1` }, /^127\.0\.0\.1:\d+\/gone@sha256:[0-9a-f]{64} is no longer in its registry, and only the files/)
  await fails(t, app, { image: String(names[1]), target: `${target.host}/a:1`, credentials: LOGIN }, /wants a login to read the image; only logins of the server itself/)
  await origin.stop()
  await fails(t, app, { image: String(names[0]), target: `${target.host}/a:1` }, /cannot be reached/)
})

t.test('a push that takes too long is ended', async (t) => {
  const app = await startPushesApp(t, {}, { pushTimeout: '6s' })
  await upload(app, await textLayout(t, 'x'), 'app:1')
  const slow = await serve(t, () => undefined)
  await fails(t, app, { image: 'app:1', target: `${slow}/app:1` }, /^the push to .* took too long$/)
})

t.test('a bearer token goes to the registry that it is for and to nobody else', async (t) => {
  const backend = await startUpstreamRegistry(t)
  const seen = new Set<string>()
  const front = await serve(t, (request, response) => {
    seen.add(request.headers.authorization ?? 'none')
    if (request.headers.authorization !== 'Bearer the-registry-token') {
      response.writeHead(401, { 'www-authenticate': 'Bearer realm="http://127.0.0.1:1/token"' }).end()
      return
    }
    void pass(backend.host, request, response)
  })
  const app = await startPushesApp(t)
  // Large enough to come in several pieces.
  const layout = await textLayout(t, Array.from({ length: 200_000 }, (_none, index) => String(index * 7919)).join(' '))
  await upload(app, layout, 'app:1')
  const { id } = await app.sdk.pushes.create({ image: 'app:1', target: `${front}/app:1`, credentials: { registry_token: 'the-registry-token' } })
  t.match(await ended(app, id), { status: 'pushed', error: null })
  t.equal(await digestAt(`${backend.host}/app:1`), layout.digest)
  t.same([...seen], ['Bearer the-registry-token'])
})

/** Passes a request on, the way of the upload that the answer names too. */
async function pass (host: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const { accept, 'content-type': type } = request.headers
  const answer = await fetch(`http://${host}${request.url ?? ''}`, {
    method: request.method,
    headers: { accept: accept ?? '*/*', ...type === undefined ? {} : { 'content-type': type } },
    ...chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }
  })
  const headers = Object.fromEntries(answer.headers)
  // An absolute address, as many registries give one.
  if (headers['location'] !== undefined) headers['location'] = headers['location'].replace(host, request.headers.host ?? '')
  response.writeHead(answer.status, headers).end(Buffer.from(await answer.arrayBuffer()))
}

async function serve (t: Test, handler: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(handler)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close(); server.closeAllConnections() })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `127.0.0.1:${address.port}`
}
