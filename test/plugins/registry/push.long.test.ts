// Pushes to the built-in registry by skopeo and by the SDK, and what becomes of them.
// Own process: it measures the memory that a push takes.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pushFromURL } from '@onkernel/hypeman/lib/push'
import t from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { makeImage } from '../../helpers/images.ts'
import { KEY, startImagesApp, temporaryFolder } from '../../helpers/images-app.ts'
import { hostArchitecture, pushLayout, writeBigLayout, writeLayout } from '../../helpers/oci.ts'
import { tar } from '../../helpers/tar.ts'
import { eventually } from '../../helpers/eventually.ts'

const login = { username: 'anything', password: KEY }
const commands = createHostCommands()

t.test('what skopeo pushes is an image without a further call, under each of its names, and can be pulled again', async (t) => {
  const app = await startImagesApp(t)
  const folder = await temporaryFolder(t)
  const layout = await writeLayout(join(folder, 'l'), [{ layers: [tar([{ path: 'f', content: 'pushed' }])], config: { Cmd: ['x'] } }])
  await pushLayout(layout, `${app.host}/myorg/myapp:v1`, login)
  const [listed] = await app.sdk.images.list()
  t.match(listed, { name: 'localhost/myorg/myapp:v1' }, 'it is listed as soon as the push has ended')
  const port = app.host.split(':')[1]
  for (const name of ['myorg/myapp:v1', `${app.host}/myorg/myapp:v1`, `localhost:${port}/myorg/myapp:v1`, 'localhost/myorg/myapp:v1', `myorg/myapp@${layout.digest}`]) {
    const image = await app.settled(name)
    t.match(image, { status: 'ready', digest: layout.digest, cmd: ['x'] }, name)
    t.equal((await app.images.require(name, 30_000)).digest, layout.digest, name)
  }
  for (const name of ['docker.io/myorg/myapp:v1', 'myorg/myapp', 'example.com/myorg/myapp:v1']) {
    t.equal((await app.request('GET', `/images/${encodeURIComponent(name)}`)).status, 404, `${name} is another image`)
  }
  t.match(await app.request('POST', '/images', { name: 'myorg/myapp:v1' }), { status: 202, body: { name: 'localhost/myorg/myapp:v1', status: 'ready' } })

  const target = join(folder, 'back')
  await commands.run('skopeo', ['copy', '--quiet', '--src-tls-verify=false', '--src-creds', `x:${KEY}`, `docker://${app.host}/myorg/myapp:v1`, `oci:${target}:image`])
  t.match(JSON.parse(await readFile(join(target, 'index.json'), 'utf8')), { manifests: [{ digest: layout.digest }] })
  t.equal((await app.request('DELETE', '/images/myorg%2Fmyapp%3Av1')).status, 204)
  t.same((await app.sdk.images.list()).map((image) => image.name), [`localhost/myorg/myapp@${layout.digest}`], 'what was required by digest is an image of its own')
})

t.test('what the SDK pushes can be required by the name that its user wrote, at once', async (t) => {
  const app = await startImagesApp(t)
  const push = async (content: string): Promise<void> => {
    await pushFromURL(app.url, KEY, makeImage([[{ path: 'f', content }]], { Entrypoint: ['/f'] }), 'myapp:latest')
  }
  await push('one')
  const first = await app.images.require('myapp:latest', 30_000)
  t.match(first, { status: 'ready', entrypoint: ['/f'] })
  await push('two')
  const second = await app.images.require('myapp', 30_000)
  t.not(second.digest, first.digest, 'a second push is what runs from then on')
  t.equal((await app.sdk.images.get('myapp')).digest, second.digest)
  t.equal((await app.sdk.images.list()).length, 1)
})

t.test('an index is pushed with all its platforms and gives one image', async (t) => {
  const app = await startImagesApp(t)
  const foreign = hostArchitecture === 'amd64' ? 'arm64' : 'amd64'
  const layout = await writeLayout(join(await temporaryFolder(t), 'l'), [
    { layers: [tar([{ path: 'f', content: 'foreign' }])], architecture: foreign }, { layers: [tar([{ path: 'f', content: 'own' }])] }
  ])
  await pushLayout(layout, `${app.host}/multi:1`, login)
  t.match(await app.settled('multi:1'), { status: 'ready', digest: layout.manifests[1] })
  t.equal((await app.sdk.images.list()).length, 1)
})

t.test('things that are no images stay in the registry only', async (t) => {
  const app = await startImagesApp(t)
  const headers = { authorization: `Bearer ${KEY}` }
  const config = Buffer.from('{}')
  const digest = `sha256:${createHash('sha256').update(config).digest('hex')}`
  const start = await fetch(`${app.url}/v2/charts/web/blobs/uploads/`, { method: 'POST', headers })
  t.equal(start.status, 202)
  const location = new URL(start.headers.get('location') ?? '', app.url)
  t.equal(location.host, app.host, 'an upload goes on at the same host')
  location.searchParams.set('digest', digest)
  t.equal((await fetch(location, { method: 'PUT', headers: { ...headers, 'content-type': 'application/octet-stream' }, body: config })).status, 201)
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: { mediaType: 'application/vnd.cncf.helm.config.v1+json', digest, size: config.length },
    layers: []
  })
  const stored = await fetch(`${app.url}/v2/charts/web/manifests/1`, { method: 'PUT', headers: { ...headers, 'content-type': 'application/vnd.oci.image.manifest.v1+json' }, body: manifest })
  t.equal(stored.status, 201)
  await eventually('it is not listed any more', async () => (await app.sdk.images.list()).length === 0)
  const content = stored.headers.get('docker-content-digest') ?? ''
  const accept = { ...headers, accept: 'application/vnd.oci.image.manifest.v1+json' }
  t.equal((await fetch(`${app.url}/v2/charts/web/manifests/${content}`, { headers: accept })).status, 200)
  t.equal((await fetch(`${app.url}/v2/charts/web/manifests/${content}`, { method: 'DELETE', headers })).status, 202, 'a manifest can be deleted')
  t.equal((await fetch(`${app.url}/v2/charts/web/manifests/${content}`, { headers: accept })).status, 404)
})

t.test('a pushed image survives a restart of the server, also when its conversion was interrupted', async (t) => {
  const app = await startImagesApp(t)
  const layout = await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [tar([{ path: 'f', content: 'x' }])] }])
  await pushLayout(layout, `${app.host}/kept:1`, login)
  const oldName = `${app.host}/kept:1`
  const next = await app.restart()
  t.match(await next.settled('kept:1'), { status: 'ready', digest: layout.digest })
  t.match(await next.settled(oldName), { status: 'ready', digest: layout.digest }, 'the host name that it was pushed by still means it')
})

t.test('a layer of 120 MB passes through without being held in memory', async (t) => {
  const app = await startImagesApp(t)
  const layout = await writeBigLayout(join(await temporaryFolder(t), 'l'), 120 * 2 ** 20)
  let peakBytes = 0
  const before = process.memoryUsage().rss
  const watch = setInterval(() => { peakBytes = Math.max(peakBytes, process.memoryUsage().rss - before) }, 20)
  await pushLayout(layout, `${app.host}/big:1`, login)
  const image = await app.settled('big:1')
  clearInterval(watch)
  t.equal(image.status, 'ready', String(image.error))
  t.ok((image.size_bytes ?? 0) >= 120 * 2 ** 20)
  t.comment(`memory grew by at most ${Math.round(peakBytes / 2 ** 20)} MB`)
  t.ok(peakBytes < 60 * 2 ** 20, `memory grew by ${peakBytes} bytes`)
})
