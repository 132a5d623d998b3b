// Pulls that cannot succeed: each ends as a failed image or an answer that a person understands, and leaves nothing behind.
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CLOSED_HOST, LOGIN, startUpstreamRegistry } from '../../helpers/upstream-registry.ts'
import { startGatedRegistry } from '../../helpers/gated-registry.ts'
import { folders, startImagesApp, temporaryFolder, type ImagesApp } from '../../helpers/images-app.ts'
import { pushLayout, writeLayout, type OciLayout } from '../../helpers/oci.ts'
import { tar } from '../../helpers/tar.ts'

async function smallLayout (t: Test, text = 'x'): Promise<OciLayout> {
  return await writeLayout(join(await temporaryFolder(t), 'layout'), [{ layers: [tar([{ path: 'f', content: text }])] }])
}

async function nothingLeft (t: Test, app: ImagesApp): Promise<void> {
  t.same(await folders(app), [], 'no file is left')
}

t.test('what does not exist is 404 and leaves no image', async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const app = await startImagesApp(t)
  await pushLayout(await smallLayout(t), `${upstream.host}/there:1`)
  for (const end of ['there:2', 'nowhere:1', `there@sha256:${'a'.repeat(64)}`]) {
    t.match(await app.request('POST', '/images', { name: `${upstream.host}/${end}` }), { status: 404, body: { code: 'not_found' } }, end)
  }
  t.same((await app.request('GET', '/images')).body, [])
  await t.rejects(app.images.require(`${upstream.host}/nowhere:1`, 1000), { code: 'not_found' })
  await nothingLeft(t, app)
})

t.test('a name that has become unknown upstream keeps what it means here', async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const app = await startImagesApp(t)
  const layout = await smallLayout(t)
  const name = `${upstream.host}/short-lived:1`
  await pushLayout(layout, name)
  await app.request('POST', '/images', { name })
  await app.settled(name)
  t.equal((await fetch(`http://${upstream.host}/v2/short-lived/manifests/${layout.digest}`, { method: 'DELETE' })).status, 202)
  t.equal((await app.request('POST', '/images', { name })).status, 404)
  t.match(await app.request('GET', `/images/${name}`), { status: 200, body: { status: 'ready', digest: layout.digest } })
  t.equal((await app.images.require(name, 0)).digest, layout.digest)
})

t.test('an image that another registry holds back comes from the one that its own name has; also after a restart', async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const gated = await startGatedRegistry(t, upstream.host)
  const layout = await smallLayout(t)
  await pushLayout(layout, `${upstream.host}/app:1`)
  const names = [`${gated.host}/app:1`, `${upstream.host}/app:1`] as const
  for (const isRestarted of [false, true]) {
    gated.hold()
    const started = await startImagesApp(t)
    for (const name of names) {
      t.equal((await started.request('POST', '/images', { name })).body['digest'], layout.digest)
      await gated.held()
    }
    const app = isRestarted ? await started.restart() : started
    for (const name of names) t.match(await app.settled(name), { status: 'ready', error: null }, name)
    t.same(await folders(app), [layout.digest.slice(7)])
  }
})

t.test('a login is needed, refused or right', async (t) => {
  const upstream = await startUpstreamRegistry(t, { login: true })
  const app = await startImagesApp(t)
  const layout = await smallLayout(t)
  const name = `${upstream.host}/private:1`
  await pushLayout(layout, name, LOGIN)
  for (const credentials of [undefined, { username: 'user', password: 'wrong-password' }]) {
    const answer = await app.request('POST', '/images', { name, ...credentials === undefined ? {} : { credentials } })
    t.match(answer, { status: 202, body: { status: 'failed', error: 'refused the login' } })
    t.match(await app.request('GET', `/images/${name}`), { status: 200, body: { status: 'failed' } })
  }
  await t.rejects(app.images.require(name, 0), { code: 'image_failed' })
  await nothingLeft(t, app)
  t.match(await app.request('POST', '/images', { name, credentials: LOGIN }), { status: 202 })
  t.equal((await app.settled(name)).status, 'ready')
  const log = JSON.stringify(app.lines)
  t.notMatch(log, /wrong-password/, 'no password in the log')
  t.notMatch(log, new RegExp(Buffer.from('user:wrong-password').toString('base64')))
  for (const credentials of [{ username: 'a' }, { password: 'b' }, { registry_token: 'x', username: 'a', password: 'b' }]) {
    t.match(await app.request('POST', '/images', { name, credentials }), { status: 400, body: { code: 'invalid_request', message: 'credentials' } })
  }
})

t.test('the server has logins of its own', async (t) => {
  const upstream = await startUpstreamRegistry(t, { login: true })
  const file = join(await temporaryFolder(t), 'config.json')
  await writeFile(file, JSON.stringify({ auths: { [upstream.host]: { auth: Buffer.from('user:secret').toString('base64') } } }))
  const app = await startImagesApp(t, { images: { credentialsFile: file } })
  await pushLayout(await smallLayout(t), `${upstream.host}/private:1`, LOGIN)
  await app.request('POST', '/images', { name: `${upstream.host}/private:1` })
  t.equal((await app.settled(`${upstream.host}/private:1`)).status, 'ready')
})

t.test('a registry token goes to the registry and to nobody else', async (t) => {
  const backend = await startUpstreamRegistry(t)
  await pushLayout(await smallLayout(t), `${backend.host}/app:1`)
  // a registry that takes one bearer token
  const seen = new Set<string>()
  const front = await serve(t, (request, response) => {
    seen.add(request.headers.authorization ?? 'none')
    if (request.headers.authorization !== 'Bearer the-registry-token') {
      response.writeHead(401, { 'www-authenticate': 'Bearer realm="http://127.0.0.1:1/token"' }).end()
      return
    }
    fetch(`http://${backend.host}${request.url ?? ''}`, { method: request.method, headers: { accept: request.headers.accept ?? '*/*' } })
      .then(async (answer) => response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(Buffer.from(await answer.arrayBuffer())))
      .catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined))
  })
  const app = await startImagesApp(t)
  const name = `${front}/app:1`
  await app.request('POST', '/images', { name, credentials: { registry_token: 'the-registry-token' } })
  const image = await app.settled(name)
  t.equal(image.status, 'ready', String(image.error))
  // the relay tries TLS first, which a plain server sees as garbage and never as a request
  t.same([...seen], ['Bearer the-registry-token'])
  t.notMatch(JSON.stringify(app.lines), /the-registry-token/)
  t.match(await app.request('POST', '/images', { name: `${front}/app:1`, credentials: { registry_token: 'wrong' } }), { body: { status: 'failed' } })
})

t.test('a corrupt layer is a failed image', async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const app = await startImagesApp(t)
  const layout = await smallLayout(t, 'content '.repeat(20_000))
  const name = `${upstream.host}/corrupt:1`
  await pushLayout(layout, name)
  const path = upstream.blob(String(layout.layers[0]?.digest))
  const bytes = await readFile(path)
  const middle = Math.floor(bytes.length / 2)
  bytes[middle] = (bytes[middle] ?? 0) ^ 0xff
  await writeFile(path, bytes)
  t.match(await app.request('POST', '/images', { name }), { status: 202, body: { status: 'pending', digest: layout.digest } })
  const image = await app.settled(name)
  t.match(image, { status: 'failed', error: /corrupt/, size_bytes: null })
  await nothingLeft(t, app)
  // repaired upstream, it can be pulled again
  bytes[middle] = (bytes[middle] ?? 0) ^ 0xff
  await writeFile(path, bytes)
  await app.request('POST', '/images', { name })
  t.equal((await app.settled(name)).status, 'ready')
})

t.test('a layer that cannot be unpacked is a failed image', async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const app = await startImagesApp(t)
  const name = `${upstream.host}/garbage:1`
  await pushLayout(await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [Buffer.from('no archive'.repeat(1000))] }]), name)
  await app.request('POST', '/images', { name })
  t.match(await app.settled(name), { status: 'failed', error: /corrupt/ })
  await nothingLeft(t, app)
})

t.test('a registry that cannot be reached, asks to wait, or stalls', async (t) => {
  const patient = await startImagesApp(t)
  const closed = CLOSED_HOST
  t.match(await patient.request('POST', '/images', { name: `${closed}/a:1` }), { status: 202, body: { status: 'failed', error: 'cannot be reached' } })

  const busy = await serve(t, (_request, response) => response.writeHead(429, { 'content-type': 'application/json', 'retry-after': '0' }).end('{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}'))
  t.match(await patient.request('POST', '/images', { name: `${busy}/a:1` }), { status: 429, body: { code: 'rate_limited' } })

  const app = await startImagesApp(t, { images: { resolveWait: '300ms' } })
  const waiting: ServerResponse[] = []
  const slow = await serve(t, (_request, response) => { waiting.push(response) })
  const late = await app.request('POST', '/images', { name: `${slow}/a:1` })
  t.match(late, { status: 202, body: { status: 'pending', digest: '', queue_position: null } }, 'a slow registry does not hold the caller')
  t.equal((await app.request('DELETE', `/images/${slow}/a:1`)).status, 204, 'and can be given up')
  t.equal((await app.request('GET', `/images/${slow}/a:1`)).status, 404)
  const again = await app.request('POST', '/images', { name: `${slow}/a:1`, credentials: { username: 'a', password: 'b' } })
  t.equal(again.status, 202)
  t.match(await app.request('POST', '/images', { name: `${slow}/a:1`, credentials: { username: 'a', password: 'c' } }),
    { status: 409, body: { code: 'conflict' } })
  t.equal((await app.request('POST', '/images', { name: `${slow}/a:1` })).status, 202, 'without credentials one just joins')
  for (const response of waiting) response.destroy()
})

t.test('a pull that does not fit on the disk is refused before it begins', async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const app = await startImagesApp(t, { images: { minFree: '1000TB' } })
  const name = `${upstream.host}/big:1`
  await pushLayout(await smallLayout(t), name)
  await app.request('POST', '/images', { name })
  t.match(await app.settled(name), { status: 'failed', error: /too little space/ })
  await nothingLeft(t, app)
})

t.test('what is no container image is refused', async (t) => {
  const app = await startImagesApp(t)
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: { mediaType: 'application/vnd.cncf.helm.config.v1+json', digest: `sha256:${'0'.repeat(64)}`, size: 2 },
    layers: []
  })
  const fake = await serve(t, (request, response) => {
    if (request.url === '/v2/') response.end('{}')
    else response.writeHead(200, { 'content-type': 'application/vnd.oci.image.manifest.v1+json' }).end(manifest)
  })
  t.match(await app.request('POST', '/images', { name: `${fake}/chart:1` }), { status: 202, body: { status: 'failed', error: 'is not a container image' } })
})

async function serve (t: Test, handler: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(handler)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close(); server.closeAllConnections() })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `127.0.0.1:${address.port}`
}
