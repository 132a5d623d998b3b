// Where a registry, or whoever names one, can send this server: nowhere that the operator has not opened. Real skopeo, a hostile registry, and a service that must not be asked.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { createResolveHost } from '../../../core/library/addresses.ts'
import { INNER_HOSTS, insider, listen, ownAddress, SECRET, withRealm } from '../../helpers/hostile-registry.ts'
import { startImagesApp, temporaryFolder, type ImagesApp } from '../../helpers/images-app.ts'
import { withoutNetworkNamespaces } from '../../helpers/rights.ts'
import { startUpstreamRegistry } from '../../helpers/upstream-registry.ts'

const skip = withoutNetworkNamespaces

async function pull (app: ImagesApp, name: string): Promise<{ status?: string, error?: string | null }> {
  await app.sdk.images.create({ name })
  return await app.settled(name)
}

t.test('a registry that sends the server to an inner service for a token gets nothing, and the service is not asked', { skip }, async (t) => {
  const app = await startImagesApp(t, { registry: false })
  const inner = await insider(t)
  for (const host of INNER_HOSTS) {
    const hostile = await withRealm(t, `http://${host}:${inner.port}/token`)
    const image = await pull(app, `${hostile.host}:${hostile.port}/evil/image:${host.replaceAll(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '')}`)
    t.equal(image.status, 'failed', host)
    t.notOk(hostile.requests.some((line) => line.includes(SECRET)), `${host}: the registry has learnt nothing`)
  }
  t.same(inner.requests, [], 'nobody has asked the service')
  const own = ownAddress()
  if (own === undefined) return t.comment('this machine has no address but loopback')
  const outer = await insider(t, own)
  const hostile = await withRealm(t, `http://${own}:${outer.port}/token`)
  t.match(await pull(app, `${hostile.host}:${hostile.port}/evil/image:own`), { status: 'failed', error: /address that this server does not dial/ })
  t.same(outer.requests, [], 'nor a service at the host\'s own address')
})

t.test('a registry that redirects to an inner service gets the server nowhere, for manifests and for layers', { skip }, async (t) => {
  const app = await startImagesApp(t, { registry: false })
  const own = ownAddress()
  const inner = await insider(t)
  const outer = own === undefined ? inner : await insider(t, own)
  for (const place of [`http://127.0.0.1:${inner.port}/x`, `http://${outer.host}:${outer.port}/x`, 'http://169.254.169.254/latest/meta-data/']) {
    const manifest = await listen(t, '127.0.0.1', (request, response) => {
      if (request.url === '/v2/') response.writeHead(200).end()
      else response.writeHead(307, { location: place }).end()
    })
    t.equal((await pull(app, `${manifest.host}:${manifest.port}/evil/manifest:1`)).status, 'failed', place)
    const body = JSON.stringify({
      schemaVersion: 2, mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest: `sha256:${'a'.repeat(64)}`, size: 10 },
      layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', digest: `sha256:${'b'.repeat(64)}`, size: 10, urls: [place] }]
    })
    const digest = `sha256:${createHash('sha256').update(body).digest('hex')}`
    const blobs = await listen(t, '127.0.0.1', (request, response) => {
      if (request.url === '/v2/') response.writeHead(200).end()
      else if (request.url?.includes('/manifests/') === true) response.writeHead(200, { 'content-type': 'application/vnd.oci.image.manifest.v1+json', 'docker-content-digest': digest }).end(body)
      else response.writeHead(307, { location: place }).end()
    })
    t.equal((await pull(app, `${blobs.host}:${blobs.port}/evil/blobs:1`)).status, 'failed', place)
    t.ok(blobs.requests.some((line) => line.includes('/blobs/')), 'it came as far as the layers')
  }
  t.same([...inner.requests, ...outer.requests], [])
})

t.test('a caller who names an inner address as a registry is refused, with a token as without; the operator can open it', { skip }, async (t) => {
  const own = ownAddress()
  if (own === undefined) return t.comment('this machine has no address but loopback')
  const outer = await listen(t, own, (_request, response) => { response.writeHead(404).end() })
  const name = `${own}:${outer.port}/a/b:1`
  const closed = await startImagesApp(t, { registry: false })
  t.match(await pull(closed, name), { status: 'failed', error: /address that this server does not dial/ })
  const { body } = await closed.request('POST', '/images', { name: `${own}:${outer.port}/a/c:1`, credentials: { registry_token: 'token' } })
  t.match(await closed.settled(String(body['name'])), { status: 'failed', error: /address that this server does not dial/ })
  t.same(outer.requests, [])
  const opened = await startImagesApp(t, { registry: false, images: { insecureRegistries: [own] } })
  await opened.request('POST', '/images', { name })
  t.ok(outer.requests.length > 0, 'the operator has named it')
})

t.test('a helper that fails once fails one pull; the next one is as enclosed as ever', { skip }, async (t) => {
  const folder = await temporaryFolder(t)
  const { PATH = '' } = process.env
  t.teardown(() => { process.env['PATH'] = PATH })
  await writeFile(join(folder, 'setpriv'), `#!/bin/sh
PATH=${PATH}
case "$*" in *enclosure-program*) [ -e ${folder}/failed ] || { touch ${folder}/failed; echo 'setpriv: fork failed: Cannot allocate memory' >&2; exit 1; };; esac
exec setpriv "$@"
`, { mode: 0o755 })
  process.env['PATH'] = `${folder}:${PATH}`
  const app = await startImagesApp(t, { registry: false })
  const inner = await insider(t)
  const hostile = await withRealm(t, `http://127.0.0.1:${inner.port}/token`)
  const name = `${hostile.host}:${hostile.port}/evil/image:1`
  t.match(await pull(app, name), { status: 'failed', error: `${name} could not be pulled` })
  t.ok(existsSync(join(folder, 'failed')))
  t.same(hostile.requests, [])
  t.match(await pull(app, name), { status: 'failed' })
  t.ok(hostile.requests.length > 0, 'the next one has asked the registry')
  t.same(inner.requests, [], 'and nobody has asked the service')
})

t.test('a real registry on this host works through the same way, and what is refused names the registry as the caller wrote it', { skip }, async (t) => {
  const app = await startImagesApp(t, { registry: false })
  const upstream = await startUpstreamRegistry(t)
  const { body, status } = await app.request('POST', '/images', { name: `${upstream.host}/nothing/here:1` })
  t.equal(status, 404)
  t.notMatch(JSON.stringify(body), /berth\.invalid/)
})

t.test('answers that no server may give cost the pull alone', { skip }, async (t) => {
  const app = await startImagesApp(t, { registry: false })
  for (const head of ['HTTP/1.1 099 Odd', 'HTTP/1.1 000 Odd', 'HTTP/1.1 200 OK\r\nTrailer: x\r\nContent-Length: 0', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade', 'nonsense']) {
    const server = createTcpServer((socket) => {
      socket.on('error', () => { socket.destroy() })
      socket.once('data', () => { socket.end(`${head}\r\n\r\n`) })
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    t.teardown(() => { server.close() })
    const address = server.address()
    const host = `127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
    t.equal((await pull(app, `${host}/odd/image:1`)).status, 'failed', head)
    const { body } = await app.request('POST', '/images', { name: `${host}/odd/token:1`, credentials: { registry_token: 'token' } })
    t.equal((await app.settled(String(body['name']))).status, 'failed', `${head}, with a token`)
  }
  t.equal((await app.request('GET', '/images')).status, 200)
})

t.test('names are judged by all that they mean; the operator\'s own registries may be anywhere but at a metadata service', async (t) => {
  const resolve = createResolveHost({ allowPrivate: ['10.20.0.0/16'], trusted: ['10.30.0.1', '10.30.0.2:5000', '169.254.169.254'], setting: 'allowPrivate' })
  for (const host of ['10.20.0.5', '10.30.0.1', '1.1.1.1', '[2606:4700::1111]']) t.same(await resolve({ host, port: 443 }), [host.replaceAll(/[[\]]/g, '')], host)
  t.same(await resolve({ host: '10.30.0.2', port: 5000 }), ['10.30.0.2'])
  for (const host of ['10.30.0.2', '10.30.0.3', '127.0.0.1', '[::1]', '[::ffff:10.1.2.3]', '[64:ff9b::a00:1]', '169.254.169.254', '168.63.129.16', 'localhost', 'metadata.google.internal', '0.0.0.0', '224.0.0.1']) {
    await t.rejects(resolve({ host, port: 443 }), { name: 'AddressRefused' }, host)
  }
})
