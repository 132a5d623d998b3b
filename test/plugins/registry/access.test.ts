// Who may do what at /v2.
import { request as httpRequest } from 'node:http'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { join } from 'node:path'
import t from 'tap'
import { eventually } from '../../helpers/eventually.ts'
import { KEY, startImagesApp, temporaryFolder, type ImagesApp } from '../../helpers/images-app.ts'
import { pushLayout, writeLayout } from '../../helpers/oci.ts'
import { tar } from '../../helpers/tar.ts'

const basic = (user: string, password: string): string => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

function keyOf (app: ImagesApp, ...scopes: string[]): string {
  return app.deps.apiKeys.issueEphemeral('test', scopes, 600_000).key
}

async function status (app: ImagesApp, method: string, path: string, authorization?: string): Promise<number> {
  const response = await fetch(app.url + path, { method, headers: authorization === undefined ? {} : { authorization } })
  await response.arrayBuffer()
  return response.status
}

t.test('a key opens the registry as bearer token, as password and as user name; nothing else does', async (t) => {
  const app = await startImagesApp(t)
  for (const path of ['/v2', '/v2/']) {
    for (const good of [`Bearer ${KEY}`, basic('x', KEY), basic(KEY, ''), basic('', KEY)]) t.equal(await status(app, 'GET', path, good), 200, good.slice(0, 7))
    for (const bad of [undefined, 'Bearer wrong', basic('x', 'wrong'), basic('', ''), 'Basic ???', 'Digest x']) t.equal(await status(app, 'GET', path, bad), 401)
  }
  const response = await fetch(`${app.url}/v2/`)
  t.equal(response.headers.get('www-authenticate'), `Bearer realm="${app.url}/v2/token",service="berth"`)
  t.equal(response.headers.get('docker-distribution-api-version'), 'registry/2.0')
  t.same(await response.json(), { errors: [{ code: 'UNAUTHORIZED', message: 'registry authentication required' }] })
  const behindTls = await fetch(`${app.url}/v2/`, { headers: { 'x-forwarded-proto': 'https' } })
  t.equal(behindTls.headers.get('www-authenticate'), `Bearer realm="https://${app.host}/v2/token",service="berth"`)
  for (const path of ['/v2/a/tags/list', '/v2/_catalog', '/v2/a/manifests/b']) t.equal(await status(app, 'GET', path), 401, path)
  t.equal(await status(app, 'PUT', '/v2/a/manifests/b'), 401)
})

t.test('a token stands for its key: as long, as far, and not longer than minutes', async (t) => {
  const app = await startImagesApp(t)
  const exchange = async (authorization?: string): Promise<{ status: number, token: string, seconds: number }> => {
    const response = await fetch(`${app.url}/v2/token?service=berth&scope=repository:a:pull`, { headers: authorization === undefined ? {} : { authorization } })
    const body: { token?: string, access_token?: string, expires_in?: number } = Object.assign({}, await response.json())
    t.equal(body.token, body.access_token)
    return { status: response.status, token: body.token ?? '', seconds: body.expires_in ?? 0 }
  }
  t.equal((await exchange()).status, 401)
  t.equal((await exchange(basic('x', 'wrong'))).status, 401)
  const reader = await exchange(basic('x', keyOf(app, 'image:read', 'instance:write')))
  t.match(reader, { status: 200, seconds: 300 })
  t.equal(await status(app, 'GET', '/v2/', `Bearer ${reader.token}`), 200)
  t.equal(await status(app, 'POST', '/v2/a/blobs/uploads/', `Bearer ${reader.token}`), 403)
  const api = await fetch(`${app.url}/images`, { headers: { authorization: `Bearer ${reader.token}` } })
  t.equal(api.status, 200)
  const [first, second] = await Promise.all([exchange(`Bearer ${KEY}`), exchange(basic('x', KEY))])
  t.equal(first.token, second.token, 'asking again makes no more tokens')
  t.equal(await status(app, 'POST', '/v2/a/blobs/uploads/', `Bearer ${first.token}`), 202)
})

function tokenIn (body: unknown): string {
  return typeof body === 'object' && body !== null && 'token' in body ? String(body.token) : ''
}

t.test('a token, and what is under way with it, ends with its key', async (t) => {
  const app = await startImagesApp(t)
  const { key, revoke } = app.deps.apiKeys.issueEphemeral('test', ['image:read', 'image:write'], 600_000)
  const exchange = async (credential: string): Promise<string> => {
    const response = await fetch(`${app.url}/v2/token`, { headers: { authorization: `Bearer ${credential}` } })
    return tokenIn(await response.json())
  }
  const token = await exchange(key)
  t.equal(await exchange(token), token, 'a token is exchanged for itself, so it lasts no longer')
  const begun = await fetch(`${app.url}/v2/a/blobs/uploads/`, { method: 'POST', headers: { authorization: `Bearer ${token}` } })
  const upload = new URL(begun.headers.get('location') ?? '', app.url)
  const layer = httpRequest(upload, { method: 'PATCH', headers: { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream', 'transfer-encoding': 'chunked' } })
  // On a host under load the server may come to the request only after the key has ended.
  const ended = Promise.race([once(layer, 'error').then(() => 'cut off'), once(layer, 'response').then(([answer]) => Number(answer.statusCode))])
  layer.write('x'.repeat(1000))
  await eventually('the upload is under way', () => layer.socket?.bytesWritten !== undefined && layer.socket.bytesWritten > 1000)
  t.equal(await status(app, 'GET', '/v2/', `Bearer ${token}`), 200)
  revoke()
  const end = await ended
  t.ok(end === 'cut off' || end === 401, `it ends: ${end}`)
  for (const credential of [key, token]) t.equal(await status(app, 'GET', '/v2/', `Bearer ${credential}`), 401)
})

t.test('what is under way with a token ends with its key also once the token has expired by itself', async (t) => {
  const app = await startImagesApp(t, { registry: { tokenTtl: '1s' } })
  const { key, revoke } = app.deps.apiKeys.issueEphemeral('test', ['image:read', 'image:write'], 600_000)
  const exchanged = await fetch(`${app.url}/v2/token`, { headers: { authorization: `Bearer ${key}` } })
  const authorization = `Bearer ${tokenIn(await exchanged.json())}`
  const type = 'application/vnd.oci.image.manifest.v1+json'
  const manifest = httpRequest(`${app.url}/v2/a/manifests/late`, { method: 'PUT', headers: { authorization, 'content-type': type, 'transfer-encoding': 'chunked' } })
  const ended = Promise.race([once(manifest, 'error').then(() => 'cut off'), once(manifest, 'response').then(([answer]) => Number(answer.statusCode))])
  manifest.write('{')
  await eventually('the token has expired', async () => await status(app, 'GET', '/v2/', authorization) === 401)
  t.equal(await Promise.race([ended, Promise.resolve('goes on')]), 'goes on', 'a token ends nothing by its own end')
  revoke()
  t.equal(await Promise.race([ended, delay(5000, 'goes on')]), 'cut off')
  manifest.destroy()
})

t.test('a key that is limited to repositories reads all and writes those, by itself and by its tokens', async (t) => {
  const app = await startImagesApp(t)
  const { key } = app.deps.apiKeys.issueEphemeral('test', ['image:read', 'image:write', 'image:delete'], 600_000, ['localhost/team/*'])
  const exchanged = await fetch(`${app.url}/v2/token`, { headers: { authorization: `Bearer ${key}` } })
  for (const credential of [key, tokenIn(await exchanged.json())]) {
    const authorization = `Bearer ${credential}`
    t.equal(await status(app, 'POST', '/v2/team/app/blobs/uploads/', authorization), 202)
    t.equal(await status(app, 'POST', '/v2/other/blobs/uploads/', authorization), 403)
    t.equal(await status(app, 'PUT', '/v2/teamster/app/manifests/latest', authorization), 403)
    t.equal(await status(app, 'DELETE', `/v2/other/manifests/sha256:${'a'.repeat(64)}`, authorization), 403)
    t.equal(await status(app, 'GET', '/v2/other/tags/list', authorization), 404)
  }
  t.match(await app.request('DELETE', '/images/localhost/other:1', undefined, key), { status: 403, body: { message: 'this key may not write to the repository localhost/other' } })
  t.equal((await app.request('DELETE', '/images/localhost/team/app:1', undefined, key)).status, 404)
})

t.test('who pushes gives images no name of another registry that its key may not write to, whatever it calls this one', async (t) => {
  const app = await startImagesApp(t, { registry: { hosts: ['berth.example'] } })
  const layout = await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [tar([{ path: 'f', content: 'x' }])] }])
  await pushLayout(layout, `${app.host}/acme/app:0`, { username: 'x', password: KEY })
  const stored = await fetch(`${app.url}/v2/acme/app/manifests/0`, { headers: { authorization: `Bearer ${KEY}`, accept: 'application/vnd.oci.image.manifest.v1+json' } })
  const manifest = await stored.text()
  const push = async (tag: string, host: string, key: string): Promise<void> => {
    const type = 'application/vnd.oci.image.manifest.v1+json'
    t.equal(await rawStatus(app, 'PUT', `/v2/acme/app/manifests/${tag}`, { host, 'content-type': type, authorization: `Bearer ${key}` }, manifest), 201, `${tag} at ${host}`)
    t.match(await app.settled(`localhost/acme/app:${tag}`), { status: 'ready' })
  }
  const known = async (name: string): Promise<number> => (await app.request('GET', `/images/${encodeURIComponent(name)}`)).status
  const limited = (...repositories: string[]): string => app.deps.apiKeys.issueEphemeral('test', ['image:read', 'image:write'], 600_000, ['localhost/acme/*', ...repositories]).key
  await push('1', 'ghcr.io', limited())
  t.equal(await known('ghcr.io/acme/app:1'), 404, 'a limited key')
  await push('2', 'library', limited())
  await push('3', 'index.docker.io', limited('index.docker.io/acme/*'))
  for (const name of ['docker.io/library/acme/app:2', 'docker.io/acme/app:3']) t.equal(await known(name), 404, name)
  await push('4', 'ghcr.io', limited('ghcr.io/acme/*'))
  t.equal(await known('ghcr.io/acme/app:4'), 200, 'a limited key that may write there')
  await push('5', 'ghcr.io', KEY)
  t.equal(await known('ghcr.io/acme/app:5'), 200, 'a key without limits')
  for (const [index, host] of [app.host, app.host.replace('127.0.0.1', 'localhost'), 'berth.example'].entries()) {
    const tag = `own-${index}`
    await push(tag, host, limited())
    for (const name of [`${host}/acme/app:${tag}`, `acme/app:${tag}`]) t.equal(await known(name), 200, `${name}: this server's own name`)
  }
})

t.test('each call needs its scope', async (t) => {
  const app = await startImagesApp(t)
  const digest = `sha256:${'a'.repeat(64)}`
  const calls: ReadonlyArray<readonly [method: string, path: string, scopes: readonly string[]]> = [
    ['GET', '/v2/_catalog', ['image:read']],
    ['GET', '/v2/a/b/tags/list', ['image:read']],
    ['GET', `/v2/a/manifests/${digest}`, ['image:read']],
    ['HEAD', '/v2/a/manifests/latest', ['image:read', 'image:write']],
    ['HEAD', `/v2/a/blobs/${digest}`, ['image:read', 'image:write']],
    ['GET', `/v2/a/blobs/${digest}`, ['image:read']],
    ['POST', '/v2/a/blobs/uploads/', ['image:write']],
    ['PATCH', '/v2/a/blobs/uploads/x-1', ['image:write']],
    ['PUT', '/v2/a/manifests/latest', ['image:write']],
    ['DELETE', '/v2/a/blobs/uploads/x-1', ['image:write']],
    ['DELETE', `/v2/a/manifests/${digest}`, ['image:delete']],
    ['DELETE', `/v2/a/blobs/${digest}`, ['image:delete']]
  ]
  for (const scope of ['image:read', 'image:write', 'image:delete', 'instance:read']) {
    const authorization = `Bearer ${keyOf(app, scope)}`
    for (const [method, path, scopes] of calls) {
      const got = await status(app, method, path, authorization)
      t.equal(got !== 403 && got !== 401, scopes.includes(scope), `${method} ${path} with ${scope}: ${got}`)
    }
  }
  for (const [method, path] of [['GET', '/v2/A/manifests/x'], ['GET', '/v2/a/../b/tags/list'], ['GET', '/v2/a//b/tags/list'], ['POST', '/v2/a/manifests/x'], ['GET', '/v2/a%2Fb/tags/list'], ['PUT', '/v2/_catalog']] as const) {
    const raw = await rawStatus(app, method, path)
    t.equal(raw, 404, `${method} ${path} never reaches the store`)
  }
})

t.test('the shared caches of builds are written and deleted only with a scope of their own, and everybody reads them', async (t) => {
  const app = await startImagesApp(t)
  const writer = keyOf(app, 'image:read', 'image:write', 'image:delete')
  const filler = keyOf(app, 'image:write', 'image:delete', 'build:admin')
  const exchanged = await fetch(`${app.url}/v2/token`, { headers: { authorization: `Bearer ${filler}` } })
  const digest = `sha256:${'a'.repeat(64)}`
  for (const [method, path] of [['POST', 'blobs/uploads/'], ['PUT', 'manifests/k1'], ['DELETE', `manifests/${digest}`], ['DELETE', `blobs/${digest}`]] as const) {
    t.equal(await status(app, method, `/v2/cache/global/node/${path}`, `Bearer ${writer}`), 403, `${method} ${path}`)
    for (const key of [filler, tokenIn(await exchanged.clone().json())]) t.not(await status(app, method, `/v2/cache/global/node/${path}`, `Bearer ${key}`), 403, `${method} ${path} with the scope`)
    t.not(await status(app, method, `/v2/cache/globally/${path}`, `Bearer ${writer}`), 403, `${method} ${path} of a scope`)
  }
  t.equal(await status(app, 'GET', '/v2/cache/global/node/tags/list', `Bearer ${writer}`), 404)
  const layout = await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [tar([{ path: 'f', content: 'x' }])] }])
  await t.rejects(pushLayout(layout, `${app.host}/cache/global/node:k1`, { username: 'x', password: writer }), { message: /build:admin|denied/ })
  await pushLayout(layout, `${app.host}/cache/global/node:k1`, { username: 'x', password: filler })
})

t.test('a DELETE with a body is refused, and Expect is answered', async (t) => {
  const app = await startImagesApp(t)
  t.equal(await rawStatus(app, 'DELETE', `/v2/a/manifests/sha256:${'a'.repeat(64)}`, { 'transfer-encoding': 'chunked' }, 'x'), 400)
  t.equal(await rawStatus(app, 'POST', '/v2/a/blobs/uploads/', { expect: '100-continue', 'content-length': '0' }), 202)
  t.equal(await rawStatus(app, 'POST', '/v2/a/blobs/uploads/', { connection: 'authorization, host, content-length', 'content-length': '0' }), 202)
})

t.test('skopeo is told that a key may not push', async (t) => {
  const app = await startImagesApp(t)
  const layout = await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [tar([{ path: 'f', content: 'x' }])] }])
  await t.rejects(pushLayout(layout, `${app.host}/a:1`, { username: 'x', password: keyOf(app, 'image:read') }), { message: /missing required scope|denied/i })
  await t.rejects(pushLayout(layout, `${app.host}/a:1`, { username: 'x', password: 'wrong' }), { message: /unauthorized|authentication|invalid username/i })
  await pushLayout(layout, `${app.host}/a:1`, { username: 'x', password: keyOf(app, 'image:read', 'image:write') })
  t.equal((await app.settled('a:1')).status, 'ready')
})

t.test('a push makes the server warn of no leak', async (t) => {
  const leaks: string[] = []
  const onWarning = ({ name, message }: Error): void => { if (name === 'MaxListenersExceededWarning' && message.includes('ServerResponse')) leaks.push(message) }
  process.on('warning', onWarning)
  t.teardown(() => { process.off('warning', onWarning) })
  const app = await startImagesApp(t)
  const layout = await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [tar([{ path: 'f', content: 'x' }])] }])
  await pushLayout(layout, `${app.host}/a:1`, { username: 'x', password: KEY })
  t.equal((await app.settled('a:1')).status, 'ready')
  t.same(leaks, [])
})

t.test('a client that leaves in the middle of an upload leaves the store unharmed', async (t) => {
  const app = await startImagesApp(t)
  const headers = { authorization: `Bearer ${KEY}` }
  for (let round = 0; round < 5; round++) {
    const start = await fetch(`${app.url}/v2/a/blobs/uploads/`, { method: 'POST', headers })
    const upload = httpRequest(new URL(start.headers.get('location') ?? '', app.url), { method: 'PATCH', headers: { ...headers, 'content-type': 'application/octet-stream' } })
    upload.on('error', () => undefined)
    upload.write(Buffer.alloc(1_000_000))
    await delay(30)
    const closed = new Promise((resolve) => upload.on('close', resolve))
    upload.destroy()
    await closed
  }
  const layout = await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [tar([{ path: 'f', content: 'x' }])] }])
  await pushLayout(layout, `${app.host}/a:1`, { username: 'x', password: KEY })
  t.equal((await app.settled('a:1')).status, 'ready')
})

// fetch tidies paths and refuses some headers; this sends them as they are.
async function rawStatus (app: ImagesApp, method: string, path: string, headers: Record<string, string> = {}, body?: string): Promise<number | undefined> {
  const { hostname, port } = new URL(app.url)
  const sent = httpRequest({ hostname, port, method, path, headers: { authorization: `Bearer ${KEY}`, ...headers }, agent: false })
  sent.end(body)
  const [response] = await once(sent, 'response')
  response.resume()
  return response.statusCode
}
