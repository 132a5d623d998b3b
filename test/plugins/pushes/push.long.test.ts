// Pushes that arrive, from every source to every kind of registry.
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startImagesApp, temporaryFolder, KEY } from '../../helpers/images-app.ts'
import { hostArchitecture, pushLayout, writeLayout } from '../../helpers/oci.ts'
import { tar } from '../../helpers/tar.ts'
import { LOGIN, startUpstreamRegistry } from '../../helpers/upstream-registry.ts'
import { digestAt, ended, startPushesApp, textLayout, upload } from './app.ts'

t.test('an image of the built-in registry arrives unchanged, with its weight and no trace of the work', async (t) => {
  const target = await startUpstreamRegistry(t)
  const app = await startPushesApp(t)
  const layout = await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [tar([{ path: 'a', content: 'one' }]), tar([{ path: 'b', content: 'two' }])], config: { Cmd: ['x'] } }])
  await upload(app, layout, 'team/app:1')

  const created = await app.request('POST', '/pushes', { image: 'team/app:1', target: `${target.host}/mirror/app` })
  t.equal(created.status, 202)
  t.match(created.body, {
    id: /^[a-z0-9]{24}$/, image: 'localhost/team/app:1', target: `${target.host}/mirror/app:latest`, digest: layout.digest, status: 'queued', error: null, completed_at: null
  })
  const id = String(created.body['id'])
  t.equal(created.headers.get('location'), `/pushes/${id}`)
  t.match(created.headers.get('retry-after'), /^\d+$/)

  const push = await ended(app, id)
  t.same((await app.request('GET', `/pushes/${id.slice(0, 12)}`)).body, push, 'found by the beginning of its id, too')
  t.match(push, { status: 'pushed', error: null, digest: layout.digest, queue_position: null, layers: 2, bytes: layout.layers.reduce((sum, { size }) => sum + size, 0) })
  t.ok(Date.parse(push.completed_at ?? '') >= Date.parse(push.created_at), 'it tells when')
  t.equal(await digestAt(`${target.host}/mirror/app:latest`), layout.digest)
  t.same(await readdir(join(app.dataDir, 'pushes')), [])

  const again = await app.sdk.pushes.create({ image: 'team/app:1', target: `${target.host}/mirror/app` })
  t.match(await ended(app, again.id), { status: 'pushed' }, 'a second time is as good')
})

t.test('every way to pack layers, and Docker manifests, arrive as they are', async (t) => {
  const target = await startUpstreamRegistry(t)
  const app = await startPushesApp(t)
  for (const packing of ['none', 'zstd'] as const) {
    const layout = await textLayout(t, 'x'.repeat(5000), { packing })
    await upload(app, layout, `${packing}:1`)
    const { id } = await app.sdk.pushes.create({ image: `${packing}:1`, target: `${target.host}/${packing}:1` })
    t.match(await ended(app, id), { status: 'pushed', digest: layout.digest }, packing)
    t.equal(await digestAt(`${target.host}/${packing}:1`), layout.digest, packing)
  }
  await pushLayout(await textLayout(t, 'docker'), `${app.host}/docker:1`, { username: 'any', password: KEY }, 'v2s2')
  const { digest } = await app.settled('docker:1')
  const { id } = await app.sdk.pushes.create({ image: 'docker:1', target: `${target.host}/docker:1` })
  t.match(await ended(app, id), { status: 'pushed', digest })
  t.equal(await digestAt(`${target.host}/docker:1`), digest)
})

t.test('of several platforms the one of this host is pushed', async (t) => {
  const [origin, target] = await Promise.all([startUpstreamRegistry(t), startUpstreamRegistry(t)])
  const app = await startPushesApp(t)
  const foreign = hostArchitecture === 'amd64' ? 'arm64' : 'amd64'
  const layer = (text: string): Buffer => tar([{ path: 'which', content: text }])
  const layout = await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [layer('foreign')], architecture: foreign }, { layers: [layer('own')] }])
  const name = `${origin.host}/both:1`
  await pushLayout(layout, name)
  await app.sdk.images.create({ name })
  await app.settled(name)
  const { id } = await app.sdk.pushes.create({ image: name, target: `${target.host}/both:1` })
  t.match(await ended(app, id), { status: 'pushed', digest: layout.manifests[1] })
  t.equal(await digestAt(`${target.host}/both:1`), layout.manifests[1])
})

t.test('an image with a second name, or by digest, comes from where it was pulled from', async (t) => {
  const [origin, target] = await Promise.all([startUpstreamRegistry(t), startUpstreamRegistry(t)])
  const app = await startPushesApp(t)
  const layout = await textLayout(t, 'pulled')
  const name = `${origin.host}/pulled:1`
  await pushLayout(layout, name)
  await app.sdk.images.create({ name })
  await app.settled(name)
  await app.sdk.images.tag(name, { target: 'localhost/second:2' })
  for (const [image, end] of [['localhost/second:2', 'second:2'], [`${origin.host}/pulled@${layout.digest}`, 'digest:1']] as const) {
    const { id } = await app.sdk.pushes.create({ image, target: `${target.host}/${end}` })
    t.match(await ended(app, id), { status: 'pushed', error: null }, image)
    t.equal(await digestAt(`${target.host}/${end}`), layout.digest)
  }
})

t.test('a login is used at the target, over TLS too', async (t) => {
  const [closed, secure] = await Promise.all([startUpstreamRegistry(t, { login: true }), startUpstreamRegistry(t, { tls: true, login: true })])
  const app = await startPushesApp(t)
  const layout = await textLayout(t, 'closed')
  await upload(app, layout, 'app:1')
  const basic = { authorization: `Basic ${Buffer.from(`${LOGIN.username}:${LOGIN.password}`).toString('base64')}` }
  const { id } = await app.sdk.pushes.create({ image: 'app:1', target: `${closed.host}/app:1`, credentials: LOGIN })
  t.match(await ended(app, id), { status: 'pushed', error: null })
  t.equal(await digestAt(`${closed.host}/app:1`, basic), layout.digest)
  const second = await app.sdk.pushes.create({ image: 'app:1', target: `${secure.host}/app:1`, credentials: LOGIN, insecure: true })
  t.match(await ended(app, second.id), { status: 'pushed', error: null }, 'over TLS')
})

t.test('without credentials the logins of the server itself are used', async (t) => {
  const target = await startUpstreamRegistry(t, { login: true })
  const file = join(await temporaryFolder(t), 'config.json')
  await writeFile(file, JSON.stringify({ auths: { [target.host]: { auth: Buffer.from(`${LOGIN.username}:${LOGIN.password}`).toString('base64') } } }))
  const app = await startPushesApp(t, { images: { credentialsFile: file } })
  await upload(app, await textLayout(t, 'own login'), 'app:1')
  for (const credentials of [undefined, {}, { username: '', password: '' }]) {
    const { id } = await app.sdk.pushes.create({ image: 'app:1', target: `${target.host}/app:1`, credentials })
    t.match(await ended(app, id), { status: 'pushed', error: null }, JSON.stringify(credentials))
  }
})

t.test('the target may be the built-in registry, and then it is an image', async (t) => {
  const origin = await startUpstreamRegistry(t)
  const app = await startPushesApp(t)
  const layout = await textLayout(t, 'own')
  const name = `${origin.host}/app:1`
  await pushLayout(layout, name)
  await app.sdk.images.create({ name })
  await app.settled(name)
  for (const target of [`${app.host}/kept/app:1`, 'localhost/kept/app:2']) {
    const { id } = await app.sdk.pushes.create({ image: name, target, credentials: { username: 'not', password: 'needed' } })
    t.match(await ended(app, id), { status: 'pushed', error: null, target })
    t.match(await app.settled(target), { status: 'ready', digest: layout.digest })
  }
  await origin.stop()
  const elsewhere = await startUpstreamRegistry(t)
  const { id } = await app.sdk.pushes.create({ image: name, target: `${elsewhere.host}/app:1` })
  t.match(await ended(app, id), { status: 'pushed', error: null }, 'what is kept here needs its first registry no more')
})

t.test('without the plugin there are no pushes', async (t) => {
  const app = await startImagesApp(t)
  t.equal((await app.request('GET', '/pushes')).status, 404)
})
