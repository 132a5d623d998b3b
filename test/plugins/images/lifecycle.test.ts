// What happens to images over time: many callers, queues, deletions, moved tags, restarts.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import t, { type Test } from 'tap'
import { readHostId } from '../../../core/data/folder.ts'
import { openDatabase } from '../../../core/db/open.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { ImagesRepository } from '../../../plugins/images/repository.ts'
import { eventually } from '../../helpers/eventually.ts'
import { startGatedRegistry, type GatedRegistry } from '../../helpers/gated-registry.ts'
import { folders, startImagesApp, temporaryFolder } from '../../helpers/images-app.ts'
import { pushLayout, writeLayout } from '../../helpers/oci.ts'
import { withoutMounts } from '../../helpers/rights.ts'
import { tar } from '../../helpers/tar.ts'
import { startUpstreamRegistry } from '../../helpers/upstream-registry.ts'

interface Gated extends GatedRegistry {
  /** Pushes an image whose only file holds `text`; resolves to its digest. */
  push (end: string, text: string): Promise<string>
}

async function startGated (t: Test): Promise<Gated> {
  const upstream = await startUpstreamRegistry(t)
  const gate = await startGatedRegistry(t, upstream.host)
  const folder = await temporaryFolder(t)
  let count = 0
  return Object.assign(gate, {
    async push (end: string, text: string) {
      const layout = await writeLayout(join(folder, String(count++)), [{ layers: [tar([{ path: 'f', content: text }])] }])
      await pushLayout(layout, `${upstream.host}/${end}`)
      return layout.digest
    }
  })
}

t.test('twenty callers at once cause one pull and get one image', async (t) => {
  const gate = await startGated(t)
  const digest = await gate.push('app:1', 'x')
  const app = await startImagesApp(t)
  const pulls: string[] = []
  app.deps.events.on('image.changed', (event) => { if (event.status === 'pulling') pulls.push(event.name) })
  const name = `${gate.host}/app:1`
  const answers = await Promise.all(Array.from({ length: 20 }, () => app.request('POST', '/images', { name })))
  t.same([...new Set(answers.map(({ status, body }) => `${status} ${String(body['digest'])}`))], [`202 ${digest}`])
  const ready = await Promise.all(Array.from({ length: 20 }, () => app.images.require(name, 30_000)))
  t.equal(new Set(ready.map((image) => image.rootfs)).size, 1)
  t.same(pulls, [name])
  t.equal(gate.blobRequests, 2, 'a configuration and a layer')
})

t.test('pulls wait in line, say where, and a deleted one makes room', async (t) => {
  const gate = await startGated(t)
  const app = await startImagesApp(t, { images: { pullConcurrency: 1 } })
  for (const end of ['a', 'b', 'c', 'd']) await gate.push(`${end}:1`, end)
  const name = (end: string): string => `${gate.host}/${end}:1`
  const shown = async (end: string): Promise<unknown> => {
    const { body } = await app.request('GET', `/images/${name(end)}`)
    return [body['status'], body['queue_position']]
  }
  gate.hold()
  for (const end of ['a', 'b', 'c', 'd']) await app.request('POST', '/images', { name: name(end) })
  await gate.held()
  t.same([await shown('a'), await shown('b'), await shown('c'), await shown('d')], [['pulling', null], ['pending', 1], ['pending', 2], ['pending', 3]])

  t.equal((await app.request('DELETE', `/images/${name('b')}`)).status, 204, 'a waiting one can be deleted')
  t.same(await shown('c'), ['pending', 1])
  t.equal((await app.request('DELETE', `/images/${name('a')}`)).status, 204, 'a running one too')
  t.equal((await app.request('GET', `/images/${name('a')}`)).status, 404)
  // pulled again at once, while the first one may still be clearing up
  t.match(await app.request('POST', '/images', { name: name('a') }), { status: 202, body: { status: 'pending' } })
  gate.release()
  for (const end of ['c', 'd', 'a']) t.equal((await app.settled(name(end))).status, 'ready', end)
  t.equal((await folders(app)).length, 3)
  t.equal((await app.request('DELETE', `/images/${name('b')}`)).status, 404)
})

t.test('a tag moves when its new content is ready, and not before', async (t) => {
  const gate = await startGated(t)
  const app = await startImagesApp(t)
  const name = `${gate.host}/moving:latest`
  const first = await gate.push('moving:latest', 'one')
  await app.request('POST', '/images', { name })
  await app.settled(name)
  await app.images.hold(first, 'instance')
  const second = await gate.push('moving:latest', 'two')
  gate.hold()
  t.match(await app.request('POST', '/images', { name }), { status: 202, body: { digest: second } })
  await gate.held()
  t.match(await app.request('GET', `/images/${name}`), { body: { digest: first, status: 'ready' } })
  t.match(await app.request('GET', `/images/${gate.host}/moving@${second}`), { body: { digest: second, status: 'pulling' } })
  await t.rejects(app.images.require(name, 50), { code: 'image_not_ready' }, 'whoever asked for the new one does not get the old one')
  const required = app.images.require(name, 30_000)
  gate.release()
  t.equal((await required).digest, second)
  t.match(await app.request('GET', `/images/${name}`), { body: { digest: second, status: 'ready' } })
  t.equal((await app.images.byDigest(first))?.digest, first, 'the instance keeps what it runs from')
  await app.images.release(first, 'instance')
  t.same(await folders(app), [second.slice(7)])
})

t.test('a second pull that fails leaves the tag where it was', async (t) => {
  const gate = await startGated(t)
  const app = await startImagesApp(t)
  const name = `${gate.host}/moving:1`
  const first = await gate.push('moving:1', 'one')
  await app.request('POST', '/images', { name })
  await app.settled(name)
  const layout = await writeLayout(join(await temporaryFolder(t), 'bad'), [{ layers: [Buffer.alloc(5000, 'not a tar')] }])
  await pushLayout(layout, name)
  t.match(await app.request('POST', '/images', { name }), { body: { digest: layout.digest } })
  const failed = await app.settled(`${gate.host}/moving@${layout.digest}`)
  t.match(failed, { status: 'failed', error: /corrupt/ })
  t.match(await app.request('GET', `/images/${name}`), { body: { digest: first, status: 'ready', error: null } })
  t.equal((await app.images.require(name, 1000)).digest, first)
  t.same(await folders(app), [first.slice(7)])
})

t.test('interrupted pulls go on after a restart, and remains are removed', async (t) => {
  const gate = await startGated(t)
  const first = await startImagesApp(t, { images: { pullConcurrency: 1 } })
  const name = (end: string): string => `${gate.host}/${end}:1`
  const digest = await gate.push('kept:1', 'kept')
  await first.request('POST', '/images', { name: name('kept') })
  await first.settled(name('kept'))
  const removed = await gate.push('removed:1', 'removed')
  await first.request('POST', '/images', { name: name('removed') })
  await first.settled(name('removed'))
  for (const end of ['running', 'waiting']) await gate.push(`${end}:1`, end)
  gate.hold()
  for (const end of ['running', 'waiting']) await first.request('POST', '/images', { name: name(end) })
  await gate.held()
  await first.stop()
  // as a crash leaves it
  await mkdir(join(first.dataDir, 'images/tmp-dead/rootfs'), { recursive: true })
  const database = openDatabase(`sqlite:${join(first.dataDir, 'berth.db')}`)
  const repository = new ImagesRepository(database, await readHostId(first.dataDir))
  await repository.removeTag(name('removed'))
  t.equal(await repository.giveUpContent(removed), true)
  // and one whose files are gone already
  await repository.wantContent({ digest: `sha256:${'f'.repeat(64)}`, repository: 'h/r', platform: 'linux/amd64', layerBytes: 1, recompress: false })

  const second = await first.restart()
  t.match((await second.request('GET', `/images/${name('running')}`)).body, { status: /pending|pulling/ })
  gate.release()
  for (const end of ['running', 'waiting']) t.equal((await second.settled(name(end))).status, 'ready')
  t.equal((await folders(second)).length, 3)
  t.ok((await folders(second)).every((entry) => /^[0-9a-f]{64}$/.test(entry) && entry !== removed.slice(7)))
  t.match(await second.request('GET', `/images/${name('kept')}`), { body: { status: 'ready', digest } })
  t.equal((await repository.contents()).length, 3)
  await database.destroy()
})

/** Makes a file or folder in the folder of images impossible to remove, as one with a fault of the disk is; returns what ends that. */
async function pin (t: Test, images: string, path: string): Promise<() => Promise<void>> {
  const { run } = createHostCommands()
  await run('mount', ['--bind', join(images, path), join(images, path)])
  const unpin = async (): Promise<void> => {
    // It moves with the folder that it is in.
    const points = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').map((line) => line.split(' ')[4] ?? '')
    for (const point of points) if (point.startsWith(images) && basename(point) === basename(path)) await run('umount', ['-l', point])
  }
  t.teardown(unpin)
  return unpin
}

for (const [what, path] of [['files', (hex: string) => join(hex, 'rootfs.erofs')], ['folder', (hex: string) => hex]] as const) {
  t.test(`whoever gives an image up whose ${what} cannot be removed is done with it, and a server starts; it goes later`, { skip: withoutMounts }, async (t) => {
    const gate = await startGated(t)
    let app = await startImagesApp(t)
    const name = `${gate.host}/stuck:1`
    const digest = await gate.push('stuck:1', 'x')
    const next = await gate.push('next:1', 'y')
    for (const each of [name, `${gate.host}/next:1`]) {
      await app.request('POST', '/images', { name: each })
      await app.settled(each)
    }
    await app.images.hold(digest, 'instance')
    const unpin = await pin(t, join(app.dataDir, 'images'), path(digest.slice(7)))
    t.equal((await app.request('DELETE', `/images/${name}`)).status, 204)
    await app.images.release(digest, 'instance')
    const said = ({ lines }: typeof app): unknown => lines.find((line) => line['level'] === 'warn' && line['digest'] === digest)?.['msg']
    t.match(said(app), /could not be removed; it is tried again/)
    app = await app.restart()
    t.match(said(app), /could not be removed; it is tried again/)
    t.equal((await app.request('DELETE', `/images/${gate.host}/next:1`)).status, 204)
    await eventually('the other one is gone', async () => !(await readdir(join(app.dataDir, 'images'))).some((entry) => entry.includes(next.slice(7))))
    t.notOk(app.lines.some((line) => String(line['msg']).includes('pulled again')))
    await unpin()
    await eventually('it is gone', async () => (await readdir(join(app.dataDir, 'images'))).length === 0, { explain: async () => (await readdir(join(app.dataDir, 'images'))).join(' ') })
    await app.stop()
    const database = openDatabase(`sqlite:${join(app.dataDir, 'berth.db')}`)
    t.teardown(async () => { await database.destroy() })
    t.same(await database('images_contents').select('digest', 'status'), [])
  })
}

t.test('a pull whose content is here is ready, whatever cannot be put in order after it', { skip: withoutMounts }, async (t) => {
  const gate = await startGated(t)
  const app = await startImagesApp(t)
  const name = `${gate.host}/moving:1`
  const first = await gate.push('moving:1', 'one')
  await app.request('POST', '/images', { name })
  await app.settled(name)
  const unpin = await pin(t, join(app.dataDir, 'images'), join(first.slice(7), 'rootfs.erofs'))
  const second = await gate.push('moving:1', 'two')
  const real = Reflect.get(ImagesRepository.prototype, 'names')
  t.teardown(() => { ImagesRepository.prototype.names = real })
  let isAway = true
  const announced: string[] = []
  app.deps.events.on('image.changed', ({ status }) => { announced.push(status) })
  ImagesRepository.prototype.names = async function (digest) {
    if (!isAway || (await this.content(digest))?.status !== 'ready') return await real.call(this, digest)
    isAway = false
    throw new Error('Connection lost')
  }
  gate.hold()
  await app.request('POST', '/images', { name })
  await gate.held()
  // The working folder of the pull, too.
  const [work] = (await readdir(join(app.dataDir, 'images'))).filter((entry) => entry.startsWith('tmp-'))
  if (work === undefined) throw new Error('no working folder')
  await mkdir(join(app.dataDir, 'images', work, 'stuck'))
  const unpinWork = await pin(t, join(app.dataDir, 'images'), join(work, 'stuck'))
  gate.release()
  await eventually('it is told of', async () => announced.includes('ready'))
  await eventually('the pull is over', async () => app.lines.some(({ msg }) => String(msg).includes('left something behind')))
  t.match(await app.request('GET', `/images/${name}`), { body: { digest: second, status: 'ready', error: null } })
  t.match(await app.request('GET', `/images/${gate.host}/moving@${second}`), { body: { status: 'ready', error: null } })
  t.notOk(isAway)
  t.notOk(announced.includes('failed'), announced.join(' '))
  await unpin()
  await eventually('what it replaced is gone', async () => !(await readdir(join(app.dataDir, 'images'))).some((entry) => entry.includes(first.slice(7))))
  const again = await app.restart()
  t.match(again.lines.find(({ msg }) => String(msg).includes('cannot be removed; the next start')), { level: 'warn', folders: [join(app.dataDir, 'images', work)] }, 'a server starts with what is left of a pull')
  await unpinWork()
})

t.test('a start with another database removes no image: with the right one they are all there, and no registry is asked', async (t) => {
  const gate = await startGated(t)
  const right = await startImagesApp(t)
  const digest = await gate.push('private:1', 'x')
  const name = `${gate.host}/private:1`
  await right.request('POST', '/images', { name })
  await right.settled(name)
  await right.stop()
  const asked = gate.blobRequests
  const wrong = await startImagesApp(t, { dataDir: right.dataDir, databaseUrl: `sqlite:${join(await temporaryFolder(t), 'empty.db')}` })
  t.equal((await wrong.request('GET', `/images/${name}`)).status, 404)
  t.match(wrong.lines.find(({ msg }) => String(msg).includes('no images that this server knows')), { level: 'warn', folders: [join(right.dataDir, 'images', digest.slice(7))], bytes: Number })
  await wrong.stop()
  const again = await right.restart()
  t.match(await again.request('GET', `/images/${name}`), { body: { status: 'ready', digest } })
  t.same(await folders(again), [digest.slice(7)])
  t.equal(gate.blobRequests, asked)
})

t.test('a question to a registry that a stop interrupted is asked again', async (t) => {
  const gate = await startGated(t)
  const app = await startImagesApp(t, { images: { resolveWait: '100ms' } })
  const digest = await gate.push('late:1', 'x')
  const stalled = await startStalled(t, gate.host)
  const name = `${stalled.host}/late:1`
  t.match(await app.request('POST', '/images', { name }), { status: 202, body: { status: 'pending', digest: '' } })
  await app.stop()
  stalled.open()
  const second = await app.restart()
  t.match(await second.settled(name), { status: 'ready', digest })
})

t.test('a caller who waits is told when the image fails, is deleted, or takes too long', async (t) => {
  const gate = await startGated(t)
  const app = await startImagesApp(t)
  await gate.push('a:1', 'x')
  const name = `${gate.host}/a:1`
  gate.hold()
  const waiting = app.images.require(name, 30_000)
  await gate.held()
  await t.rejects(app.images.require(name, 30), { code: 'image_not_ready' })
  const given = new AbortController()
  const aborted = app.images.require(name, 30_000, given.signal)
  given.abort(new Error('gone'))
  await t.rejects(aborted, { message: 'gone' })
  const deleted = app.request('DELETE', `/images/${name}`)
  await t.rejects(waiting, { code: 'not_found' })
  t.equal((await deleted).status, 204)
})

async function startStalled (t: Test, backend: string): Promise<{ host: string, open (): void }> {
  let isOpen = false
  const server = createServer((request, response) => {
    if (!isOpen) return
    fetch(`http://${backend}${request.url ?? ''}`, { method: request.method, headers: { accept: request.headers.accept ?? '*/*' } })
      .then(async (answer) => response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(Buffer.from(await answer.arrayBuffer())))
      .catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close(); server.closeAllConnections() })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { host: `127.0.0.1:${address.port}`, open () { isOpen = true } }
}
