// Pulls from a registry that somebody else runs.
import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { deferred } from '../../../core/jobs/deferred.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { busyboxLayer } from '../../helpers/images.ts'
import { folders, startImagesApp, temporaryFolder } from '../../helpers/images-app.ts'
import { listen, lying } from '../../helpers/hostile-registry.ts'
import { blobPath, hostArchitecture, pushLayout, writeLayout } from '../../helpers/oci.ts'
import { tar } from '../../helpers/tar.ts'
import { startUpstreamRegistry } from '../../helpers/upstream-registry.ts'

const commands = createHostCommands()

// Of the image itself: fsck.erofs changes owners after modes, and so drops set-user-id, and dump.erofs does not print it.
async function modeIn (image: string, dump: string): Promise<number> {
  const bytes = await readFile(image)
  const metaBlock = bytes.readUInt32LE(1024 + 40)
  const nid = Number(/NID: (\d+)/.exec(dump)?.[1])
  return bytes.readUInt16LE(metaBlock * 4096 + nid * 32 + 4)
}

t.test('an image is pulled, described, and its files keep owners, modes, links and deletions', { skip: process.getuid?.() === 0 ? false : 'only root has all owners (owners.test.ts has what others have)' }, async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const app = await startImagesApp(t)
  const folder = await temporaryFolder(t)
  const layout = await writeLayout(join(folder, 'layout'), [{
    layers: [
      tar(await busyboxLayer()),
      tar([
        { path: 'data', type: 'dir', uid: 1000, gid: 50, mode: 0o2775 },
        { path: 'data/gone', content: 'x' },
        { path: 'data/kept', content: 'kept', uid: 123456, gid: 7, mode: 0o4711 },
        { path: 'data/twin', type: 'hardlink', target: 'data/kept' },
        { path: 'opaque', type: 'dir' },
        { path: 'opaque/old', content: 'old' }
      ]),
      tar([
        { path: 'data/.wh.gone' },
        { path: 'opaque/.wh..wh..opq' },
        { path: 'opaque/new', content: 'new' }
      ])
    ],
    config: { Env: ['PATH=/bin', 'A=b=c'], Cmd: ['run'], Entrypoint: ['/bin/sh', '-c'], User: 'app', WorkingDir: '/data', StopSignal: 'SIGQUIT' }
  }])
  const name = `${upstream.host}/team/app:1`
  await pushLayout(layout, name)

  const created = await app.request('POST', '/images', { name, tags: { team: 'a' } })
  t.equal(created.status, 202)
  t.equal(created.body['digest'], layout.digest, 'the digest is known at once')
  const image = await app.settled(name)
  t.equal(image.status, 'ready', String(image.error))
  t.match(image, {
    name, digest: layout.digest, cmd: ['run'], entrypoint: ['/bin/sh', '-c'], env: { PATH: '/bin', A: 'b=c' }, working_dir: '/data',
    tags: { team: 'a' }, platform: `linux/${hostArchitecture}`, queue_position: null, error: null
  })
  const ready = await app.images.require(name, 0)
  t.equal(ready.user, 'app')
  t.equal(ready.stopSignal, 3)
  const info = await stat(ready.rootfs)
  t.equal(info.size, image.size_bytes)
  t.equal(info.mode & 0o777, 0o644, 'an unprivileged VMM can read it')

  const files = join(folder, 'files')
  await commands.run('fsck.erofs', [`--extract=${files}`, '--preserve', ready.rootfs])
  t.same(await readdir(join(files, 'data')), ['kept', 'twin'], 'a whiteout removes')
  t.same(await readdir(join(files, 'opaque')), ['new'], 'an opaque folder hides what is below')
  const kept = await stat(join(files, 'data/kept'))
  t.same([kept.uid, kept.gid], [123456, 7])
  t.equal(kept.mtimeMs, 1_700_000_000_000)
  const data = await stat(join(files, 'data'))
  t.same([data.uid, data.gid, data.mode & 0o7777], [1000, 50, 0o2775])
  const { stdout } = await commands.run('dump.erofs', ['--path=/data/twin', ready.rootfs])
  t.match(stdout, /Links: 2/, 'a hard link stays one file')
  t.equal(await modeIn(ready.rootfs, stdout), 0o104711, 'set-user-id is kept')
  t.equal(createHash('sha256').update(await readFile(join(files, 'bin/busybox'))).digest('hex'),
    createHash('sha256').update(await readFile('/bin/busybox')).digest('hex'))
  t.same(await folders(app), [layout.digest.slice(7)], 'nothing else is left')
})

t.test('of several platforms the one of this host is taken, and its digest is the image', async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const app = await startImagesApp(t)
  const folder = await temporaryFolder(t)
  const foreign = hostArchitecture === 'amd64' ? 'arm64' : 'amd64'
  const layer = (text: string): Buffer => tar([{ path: 'which', content: text }])
  const layout = await writeLayout(join(folder, 'both'), [{ layers: [layer('foreign')], architecture: foreign }, { layers: [layer('own')] }])
  await pushLayout(layout, `${upstream.host}/both:1`)
  const created = await app.request('POST', '/images', { name: `${upstream.host}/both:1`, platform: `linux/${hostArchitecture}` })
  t.equal(created.body['digest'], layout.manifests[1])
  const image = await app.settled(`${upstream.host}/both:1`)
  t.equal(image.status, 'ready', String(image.error))

  const byDigest = await app.request('GET', `/images/${encodeURIComponent(`${upstream.host}/both@${image.digest}`)}`)
  t.match(byDigest, { status: 200, body: { name: `${upstream.host}/both@${image.digest}`, status: 'ready' } })

  const one = await writeLayout(join(folder, 'one'), [{ layers: [layer('foreign')], architecture: foreign }])
  await pushLayout(one, `${upstream.host}/one:1`)
  await app.request('POST', '/images', { name: `${upstream.host}/one:1` })
  const wrong = await app.settled(`${upstream.host}/one:1`)
  t.match(wrong, { status: 'failed', error: `is made for linux/${foreign}; this host runs linux/${hostArchitecture}` })

  const two = await writeLayout(join(folder, 'two'), [{ layers: [layer('a')], architecture: foreign }, { layers: [layer('b')], architecture: 's390x' }])
  await pushLayout(two, `${upstream.host}/two:1`)
  t.match(await app.request('POST', '/images', { name: `${upstream.host}/two:1` }),
    { status: 404, body: { code: 'platform_not_available', message: `linux/${foreign}, linux/s390x` } })
  t.equal((await app.request('GET', `/images/${upstream.host}/two:1`)).status, 404, 'nothing is kept of it')
  t.match(await app.request('POST', '/images', { name: `${upstream.host}/both:1`, platform: `linux/${foreign}` }), { status: 400, body: { code: 'invalid_platform' } })
  t.match(await app.request('POST', '/images', { name: `${upstream.host}/both:1`, platform: 'Windows' }), { status: 400, body: { code: 'invalid_platform' } })
})

t.test('every way to pack layers, and Docker manifests, give the same files', async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const app = await startImagesApp(t, { images: { compression: 'lz4' } })
  const folder = await temporaryFolder(t)
  const layers = [tar([{ path: 'a', content: 'one'.repeat(10_000) }]), tar([{ path: 'b', content: 'two' }])]
  for (const kind of ['none', 'zstd', 'gzip', 'v2s2'] as const) {
    const layout = await writeLayout(join(folder, kind), [{ layers, packing: kind === 'v2s2' ? 'gzip' : kind }])
    const name = `${upstream.host}/${kind}:1`
    await pushLayout(layout, name, {}, kind === 'v2s2' ? 'v2s2' : 'oci')
    await app.request('POST', '/images', { name })
    const image = await app.settled(name)
    t.equal(image.status, 'ready', `${kind}: ${String(image.error)}`)
    const { rootfs } = await app.images.require(name, 0)
    await commands.run('fsck.erofs', [`--extract=${join(folder, `${kind}.files`)}`, rootfs])
    t.equal(await readFile(join(folder, `${kind}.files/a`), 'utf8'), 'one'.repeat(10_000))
    t.equal(await readFile(join(folder, `${kind}.files/b`), 'utf8'), 'two')
  }
})

t.test('names of one digest share one content, which goes with the last of them', async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const app = await startImagesApp(t)
  const folder = await temporaryFolder(t)
  const layout = await writeLayout(join(folder, 'l'), [{ layers: [tar([{ path: 'f', content: 'x' }])] }])
  const [first, second, third] = ['a:1', 'b:2', 'c:3'].map((end) => `${upstream.host}/${end}`)
  await pushLayout(layout, String(first))
  await pushLayout(layout, String(second))
  await app.request('POST', '/images', { name: first })
  await app.settled(String(first))
  const again = await app.request('POST', '/images', { name: second })
  t.match(again, { status: 202, body: { status: 'ready', digest: layout.digest } }, 'a known digest is ready at once')
  t.match(await app.request('POST', `/images/${encodeURIComponent(String(first))}/tag`, { target: third }), { status: 201, body: { name: third, status: 'ready' } })
  const contents = async (): Promise<string[]> => await folders(app)
  t.equal((await contents()).length, 1)
  t.equal((await app.request('DELETE', `/images/${encodeURIComponent(String(first))}`)).status, 204)
  t.equal((await app.request('DELETE', `/images/${String(third)}`)).status, 204)
  t.equal((await contents()).length, 1)
  await app.images.hold(layout.digest, 'instance-1')
  await app.images.hold(layout.digest, 'instance-1')
  t.equal((await app.request('DELETE', `/images/${encodeURIComponent(String(second))}`)).status, 204)
  t.equal((await contents()).length, 1, 'a holder keeps it')
  t.match(await app.images.byDigest(layout.digest), { status: 'ready', digest: layout.digest })
  await app.images.hold(layout.digest, 'snapshot:1')
  await app.images.release(layout.digest, 'instance-1')
  for (const holder of ['instance:1', 'instance:2']) await app.images.hold(layout.digest, holder)
  await app.images.retain('instance', new Set(['instance:1']))
  t.equal((await contents()).length, 1, 'one of its kind is left')
  await app.images.retain('instance', new Set())
  t.equal((await contents()).length, 1, 'another kind has it')
  await app.images.retain('snapshot', new Set())
  t.same(await contents(), [])
  t.equal(await app.images.byDigest(layout.digest), undefined)
  await t.rejects(app.images.hold(layout.digest, 'instance-2'), { code: 'not_found' })
  t.same((await app.request('GET', '/images')).body, [])
})

t.test('an image that another registry breaks off comes from the one that its own name has, whoever asked first', async (t) => {
  const app = await startImagesApp(t)
  const layout = await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [tar([{ path: 'f', content: 'x' }])] }])
  const manifest = await readFile(blobPath(layout.folder, layout.digest), 'utf8')
  const good = await lying(t, [layout], new Map([['1', manifest]]))
  const { promise: asked, resolve: isAsked } = deferred()
  const { promise: isOver, resolve: giveUp } = deferred()
  const bad = await listen(t, '127.0.0.1', (request, response) => {
    if (request.url?.includes('/blobs/') === true) {
      isAsked()
      void isOver.then(() => response.writeHead(404).end())
    } else if (request.url?.includes('/manifests/') === true) response.writeHead(200, { 'content-type': 'application/vnd.oci.image.manifest.v1+json' }).end(request.method === 'HEAD' ? undefined : manifest)
    else response.writeHead(200).end()
  })
  const [first, second] = [bad, good].map(({ port }) => `127.0.0.1:${port}/app:1`) as [string, string]
  t.equal((await app.request('POST', '/images', { name: first })).body['digest'], layout.digest)
  await asked
  t.equal((await app.request('POST', '/images', { name: second })).body['digest'], layout.digest)
  giveUp()
  t.match(await app.settled(second), { status: 'ready', error: null })
  t.match(await app.settled(first), { status: 'ready', error: null }, 'it is the same content')
  t.same(await folders(app), [layout.digest.slice(7)])
})

t.test('extended attributes are kept, and an image without layers is an empty one', async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const app = await startImagesApp(t)
  const folder = await temporaryFolder(t)
  const layout = await writeLayout(join(folder, 'l'), [{ layers: [Buffer.concat([paxAttribute('user.colour', 'green-as-grass'), tar([{ path: 'f', content: 'x' }])])] }])
  await pushLayout(layout, `${upstream.host}/attributes:1`)
  await app.request('POST', '/images', { name: `${upstream.host}/attributes:1` })
  const image = await app.settled(`${upstream.host}/attributes:1`)
  t.equal(image.status, 'ready', String(image.error))
  const { rootfs } = await app.images.require(`${upstream.host}/attributes:1`, 0)
  t.ok((await readFile(rootfs)).includes('green-as-grass'))

  await pushLayout(await writeLayout(join(folder, 'empty'), [{ layers: [] }]), `${upstream.host}/empty:1`)
  await app.request('POST', '/images', { name: `${upstream.host}/empty:1` })
  const empty = await app.settled(`${upstream.host}/empty:1`)
  t.equal(empty.status, 'ready', String(empty.error))
})

// A pax header before an entry, as GNU tar and Docker write extended attributes.
function paxAttribute (name: string, value: string): Buffer {
  const body = ` SCHILY.xattr.${name}=${value}\n`
  const length = body.length + 2
  const archive = tar([{ path: 'pax', content: `${length}${body}` }])
  const header = archive.subarray(0, 1024)
  header.write('x', 156, 'latin1')
  header.write(' '.repeat(8), 148)
  header.write(`${header.subarray(0, 512).reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return header
}

t.test('what a registry gives for a digest that is not it is no image, whether a manifest or an index was asked for or given', async (t) => {
  const app = await startImagesApp(t)
  const folder = await temporaryFolder(t)
  const foreign = hostArchitecture === 'amd64' ? 'arm64' : 'amd64'
  const layer = (text: string): Buffer => tar([{ path: 'f', content: text }])
  const one = async (text: string): ReturnType<typeof writeLayout> => await writeLayout(join(folder, `${text}-one`), [{ layers: [layer(text)] }])
  const two = async (text: string): ReturnType<typeof writeLayout> => await writeLayout(join(folder, `${text}-two`), [{ layers: [layer(text)] }, { layers: [layer(text)], architecture: foreign }])
  const [good, evil] = [[await one('good'), await two('good')], [await one('evil'), await two('evil')]]
  const others = new Map<string, string>()
  const registry = await lying(t, [...good, ...evil], others)
  for (const { digest } of good) {
    for (const other of evil) {
      others.set(digest, await readFile(blobPath(other.folder, other.digest), 'utf8'))
      const name = `${registry.host}:${registry.port}/app@${digest}`
      await app.request('POST', '/images', { name })
      const image = await app.settled(name)
      t.match(image, { status: 'failed', error: `the manifest of ${name} is not what its digest ${digest} promises` })
      await app.request('DELETE', `/images/${encodeURIComponent(name)}`)
    }
    others.delete(digest)
    const name = `${registry.host}:${registry.port}/app@${digest}`
    await app.request('POST', '/images', { name })
    t.match(await app.settled(name), { status: 'ready', error: null }, 'what is as its digest promises is taken')
  }
})

t.test('an image whose manifest has sizes that cannot be true has failed, and no list or details of images with it; nor does a media type fill them', async (t) => {
  const app = await startImagesApp(t)
  const layout = await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [tar([{ path: 'f', content: 'x' }])] }])
  const manifest: { config: object, layers: object[] } = JSON.parse(await readFile(blobPath(layout.folder, layout.digest), 'utf8'))
  const others = new Map<string, string>()
  const registry = await lying(t, [layout], others)
  const sized = (...sizes: number[]): string => JSON.stringify({ ...manifest, layers: sizes.map((size) => ({ ...manifest.layers[0], size })) }).replaceAll('null', '1e999')
  for (const [tag, text, error] of [
    ['huge', sized(1e308, 1e308), /size/], ['endless', sized(Infinity), /no config and layers/], ['below', sized(-1), /size/], ['part', sized(1.5), /size/], ['sum', sized(Number.MAX_SAFE_INTEGER, 1), /size/],
    ['type', JSON.stringify({ ...manifest, config: { ...manifest.config, mediaType: 'x'.repeat(100_000) } }), /^.{20,600}$/],
    ['layer', JSON.stringify({ ...manifest, layers: [{ ...manifest.layers[0], mediaType: 'x'.repeat(100_000) }] }), /^.{20,600}$/]
  ] as const) {
    others.set(tag, text)
    const name = `${registry.host}:${registry.port}/app:${tag}`
    t.equal((await app.request('POST', '/images', { name })).status, 202, tag)
    t.match(await app.settled(name), { status: 'failed', error }, tag)
    t.equal((await app.request('GET', `/images/${encodeURIComponent(name)}?details=true`)).status, 200, tag)
  }
  t.equal((await app.request('GET', '/images')).status, 200)
})
