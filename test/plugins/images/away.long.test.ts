// What becomes of an image when the database goes away in the middle: it never says that it is on its way when nothing goes on.
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openDatabase } from '../../../core/db/open.ts'
import { ImagesRepository } from '../../../plugins/images/repository.ts'
import { eventually } from '../../helpers/eventually.ts'
import { failOnce } from '../../helpers/fail-once.ts'
import { KEY, startImagesApp, temporaryFolder, type ImagesApp } from '../../helpers/images-app.ts'
import { pushLayout, writeLayout } from '../../helpers/oci.ts'
import { tar } from '../../helpers/tar.ts'
import { startUpstreamRegistry } from '../../helpers/upstream-registry.ts'

/** An image that can be pulled; its name. */
async function upstreamImage (t: Test): Promise<string> {
  const upstream = await startUpstreamRegistry(t)
  const name = `${upstream.host}/there:1`
  await pushLayout(await writeLayout(join(await temporaryFolder(t), 'layout'), [{ layers: [tar([{ path: 'f', content: 'x' }])] }]), name)
  return name
}

async function become (app: ImagesApp, name: string, status: string): Promise<void> {
  await eventually(`it is ${status}`, async () => (await app.request('GET', `/images/${name}`)).body['status'] === status, { limitMs: 60_000 })
}

/** A registry that answers nothing, until it is told to know no image. */
async function stalledRegistry (t: Test): Promise<{ readonly name: string, readonly answer: () => void }> {
  let isStalled = true
  const server = createServer((_request, response) => { if (!isStalled) response.writeHead(404).end() })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close(); server.closeAllConnections() })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { name: `127.0.0.1:${address.port}/late:1`, answer: () => { isStalled = false } }
}

type Step = 'beginAttempt' | 'point' | 'wantContent' | 'endAttempt'
const LOST: ReadonlyArray<readonly [what: string, steps: ReadonlyArray<readonly [Step, boolean]>]> = [
  ['the beginning of a pull was stored and the answer lost', [['beginAttempt', true]]],
  ['neither the digest of a pull nor its failure could be stored', [['point', false], ['endAttempt', false]]],
  ['the digest of a pull was stored, but neither the content nor the failure', [['wantContent', false], ['endAttempt', false]]],
  ['the content of a pull was stored and the answer lost, and the failure could not be stored', [['wantContent', true], ['endAttempt', false]]]
]
for (const [what, steps] of LOST) {
  t.test(`an image is pulled all the same when ${what}`, async (t) => {
    const app = await startImagesApp(t)
    const name = await upstreamImage(t)
    for (const [step, done] of steps) failOnce(t, ImagesRepository.prototype, step, { done })
    t.ok((await app.request('POST', '/images', { name })).status >= 500)
    await become(app, name, 'ready')
  })
}

t.test('an image whose content was stored as ready and the answer lost is ready, and the content that its name had before goes', async (t) => {
  const app = await startImagesApp(t)
  const upstream = await startUpstreamRegistry(t)
  const name = `${upstream.host}/moving:1`
  const push = async (content: string): Promise<void> => { await pushLayout(await writeLayout(join(await temporaryFolder(t), 'layout'), [{ layers: [tar([{ path: 'f', content }])] }]), name) }
  await push('first')
  await app.request('POST', '/images', { name })
  await become(app, name, 'ready')
  const { body: { digest: first } } = await app.request('GET', `/images/${name}`)
  await push('second')
  failOnce(t, ImagesRepository.prototype, 'finish', { done: true })
  await app.request('POST', '/images', { name })
  await eventually('the name has its new content', async () => {
    const { body } = await app.request('GET', `/images/${name}`)
    return body['digest'] !== first && body['status'] === 'ready'
  }, { limitMs: 60_000 })
  await eventually('the content before is gone', async () => (await readdir(join(app.dataDir, 'images'))).every((entry) => !entry.includes(String(first).slice(7, 40))))
  t.match((await app.request('GET', `/images/${name}`)).body, { status: 'ready', error: null })
})

for (const [what, step, done] of [
  ['was not known, as the answer was lost,', 'removeTag', true], ['could not be given up', 'giveUpContent', false], ['was given up and the answer lost', 'giveUpContent', true], ['could not be removed after its files', 'removeContent', false]
] as const) {
  t.test(`an image that was deleted and whose content ${what} leaves nothing`, async (t) => {
    const app = await startImagesApp(t)
    const name = await upstreamImage(t)
    await app.request('POST', '/images', { name })
    await become(app, name, 'ready')
    failOnce(t, ImagesRepository.prototype, step, { done })
    const { status } = await app.request('DELETE', `/images/${name}`)
    // Once the name is gone, the rest is the server's.
    if (step === 'removeTag') t.ok(status >= 500, String(status))
    else t.equal(status, 204)
    t.equal((await app.request('GET', `/images/${name}`)).status, 404)
    const database = openDatabase(`sqlite:${join(app.dataDir, 'berth.db')}`)
    t.teardown(async () => { await database.destroy() })
    await eventually('it is gone', async () => (await readdir(join(app.dataDir, 'images'))).length === 0 && (await database('images_contents')).length === 0, { limitMs: 30_000 })
  })
}

t.test('an image that does not exist and could not be said to have failed fails later', async (t) => {
  const app = await startImagesApp(t)
  const name = `${(await startUpstreamRegistry(t)).host}/nowhere:1`
  failOnce(t, ImagesRepository.prototype, 'removeTag', { done: false })
  t.ok((await app.request('POST', '/images', { name })).status >= 500)
  t.match((await app.request('GET', `/images/${name}`)).body, { status: 'pending' })
  await become(app, name, 'failed')
})

t.test('a pull that was ended for a delete, or for another meaning of its name, goes on when that cannot be stored', async (t) => {
  const app = await startImagesApp(t, { images: { resolveWait: '100ms' } })
  const ready = await upstreamImage(t)
  await app.request('POST', '/images', { name: ready })
  await become(app, ready, 'ready')
  for (const step of ['removeTag', 'assign'] as const) {
    const { name, answer } = await stalledRegistry(t)
    t.match(await app.request('POST', '/images', { name }), { status: 202, body: { status: 'pending' } })
    failOnce(t, ImagesRepository.prototype, step, { done: false })
    const refused = step === 'removeTag' ? await app.request('DELETE', `/images/${name}`) : await app.request('POST', `/images/${ready}/tag`, { target: name })
    t.ok(refused.status >= 500, `${step} ${refused.status}`)
    answer()
    await become(app, name, 'failed')
  }
})

t.test('an image whose push was noted in part becomes ready all the same', async (t) => {
  const app = await startImagesApp(t)
  const layout = await writeLayout(join(await temporaryFolder(t), 'layout'), [{ layers: [tar([{ path: 'f', content: 'x' }])] }])
  failOnce(t, ImagesRepository.prototype, 'addAlias', { done: false })
  await pushLayout(layout, `${app.host}/pushed:1`, { username: 'any', password: KEY }).catch(() => undefined)
  await become(app, 'pushed:1', 'ready')
  t.match((await app.request('GET', '/images/pushed:1')).body, { status: 'ready' })
})

t.test('a pull whose failure cannot be stored at first has failed all the same', async (t) => {
  const app = await startImagesApp(t, { images: { minFree: '900000GB' } })
  const name = await upstreamImage(t)
  const real = Reflect.get(ImagesRepository.prototype, 'setStatus')
  t.teardown(() => { ImagesRepository.prototype.setStatus = real })
  let isAway = true
  ImagesRepository.prototype.setStatus = async function (...args) {
    if (args[1] === 'failed' && isAway) {
      isAway = false
      throw new Error('Connection lost')
    }
    await real.apply(this, args)
  }
  await app.request('POST', '/images', { name })
  await become(app, name, 'failed')
  t.notOk(isAway, 'the first attempt to store it failed')
})
