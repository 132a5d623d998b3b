// Uploads are bounded by what the disk has left and by a share for each key or grant, and nothing of one that was ended stays.
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { connect } from 'node:net'
import { mkdir, readdir, rm, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { duplexPair } from '../../helpers/duplex-pair.ts'
import { eventually } from '../../helpers/eventually.ts'
import { KEY, startImagesApp, temporaryFolder, type ImagesApp } from '../../helpers/images-app.ts'
import { withoutMounts } from '../../helpers/rights.ts'
import { fillDisk } from '../../helpers/small-disk.ts'

const commands = createHostCommands()
const MIB = 2 ** 20
const UPLOADS = 'registry/store/docker/registry/v2/repositories/some/thing/_uploads'
const AUTHORIZATION = { authorization: `Bearer ${KEY}` }
const root = { skip: withoutMounts }

async function smallDisk (t: Test, options: string): Promise<string> {
  const dataDir = await temporaryFolder(t)
  await commands.run('mount', ['-t', 'tmpfs', '-o', `${options},mode=711`, 'tmpfs', dataDir])
  t.teardown(() => commands.run('umount', ['-l', dataDir]))
  return dataDir
}

async function begin (app: ImagesApp): Promise<URL> {
  const start = await fetch(`${app.url}/v2/some/thing/blobs/uploads/`, { method: 'POST', headers: AUTHORIZATION })
  t.equal(start.status, 202, await start.text())
  return new URL(start.headers.get('location') ?? '', app.url)
}

/** Sends a body until it is answered, or is as long as it may get. */
async function flood (target: URL, maxBytes: number, options: RequestOptions = {}): Promise<{ status: number, body: string, sent: number }> {
  const sent = httpRequest(target, { method: 'PATCH', headers: { ...AUTHORIZATION, 'content-type': 'application/octet-stream' }, ...options })
  sent.on('error', () => undefined)
  const answered = once(sent, 'response')
  const state = { isAnswered: false }
  const note = (): void => { state.isAnswered = true }
  answered.then(note, note)
  const piece = Buffer.alloc(64 * 1024, 1)
  let bytes = 0
  while (!state.isAnswered && bytes < maxBytes) {
    bytes += piece.length
    if (!sent.write(piece)) await Promise.race([once(sent, 'drain'), answered])
  }
  if (!state.isAnswered) sent.end()
  const [response]: IncomingMessage[] = await answered
  if (response === undefined) throw new Error('no answer')
  const body = await text(response)
  sent.destroy()
  return { status: response.statusCode ?? 0, body, sent: bytes }
}

t.test('an upload that would fill the disk is ended with an error, and its space is free again', { ...root }, async (t) => {
  const dataDir = await smallDisk(t, 'size=400m')
  const app = await startImagesApp(t, { dataDir })
  const target = await begin(app)
  const answer = await flood(target, 2000 * MIB)
  t.equal(answer.status, 507, answer.body)
  t.match(JSON.parse(answer.body), { errors: [{ code: 'INSUFFICIENT_STORAGE', message: /^the disk of the data folder has too little space: .* must stay free$/ }] })
  const free = async (): Promise<number> => {
    const { bavail, bsize } = await statfs(dataDir)
    return bavail * bsize
  }
  await eventually('the space of the upload is free', async () => await free() > 350 * MIB)
  await eventually('the folder of the upload is gone', async () => (await readdir(join(dataDir, UPLOADS))).length === 0)
  t.equal((await fetch(`${app.url}/health`)).status, 200)

  await writeFile(join(dataDir, 'filler'), Buffer.alloc(await free() - 10 * MIB))
  const start = await fetch(`${app.url}/v2/some/thing/blobs/uploads/`, { method: 'POST', headers: AUTHORIZATION })
  t.equal(start.status, 507, 'on a disk that is full already none begins')
  t.match(await start.json(), { errors: [{ code: 'INSUFFICIENT_STORAGE' }] })
  await app.stop()
})

t.test('on a disk that is full a client learns how far its upload is, and may end it; only what it sends is refused', { ...root }, async (t) => {
  const dataDir = await smallDisk(t, 'size=64m')
  const app = await startImagesApp(t, { dataDir })
  const target = await begin(app)
  const ask = async (method: string, url: URL | string = target): Promise<Response> => await fetch(url, { method, headers: AUTHORIZATION })
  await fillDisk(join(dataDir, 'filler'), MIB)
  const status = await ask('GET')
  t.equal(status.status, 204, await status.text())
  t.equal((await ask('GET')).status, 204, 'it was not removed')
  t.equal((await ask('DELETE')).status, 204)
  t.equal((await ask('GET')).status, 404)
  await rm(join(dataDir, 'filler'))
  const other = await begin(app)
  await fillDisk(join(dataDir, 'filler'), MIB)
  t.equal((await flood(other, MIB)).status, 507)
  await app.stop()
})

t.test('the unfinished uploads of one key are bounded together, those of another go on, and a token counts for its key', async (t) => {
  const app = await startImagesApp(t, { registry: { maxUpload: '4MB' } })
  const first = await begin(app)
  t.equal((await flood(first, 3 * MIB)).status, 202)
  const { token }: { token: string } = JSON.parse(await (await fetch(`${app.url}/v2/token`, { headers: AUTHORIZATION })).text())
  const second = await begin(app)
  const denied = await flood(second, 50 * MIB, { headers: { authorization: `Bearer ${token}` } })
  t.equal(denied.status, 403)
  t.match(JSON.parse(denied.body), { errors: [{ code: 'DENIED', message: 'the unfinished uploads of one key or build may have at most 4MB together' }] })
  const names = (): Promise<string[]> => readdir(join(app.dataDir, UPLOADS))
  await eventually('the upload that was ended is gone', async () => (await names()).length === 1)
  const { key } = app.deps.apiKeys.issueEphemeral('other', ['image:write'], 60_000)
  const start = await fetch(`${app.url}/v2/some/thing/blobs/uploads/`, { method: 'POST', headers: { authorization: `Bearer ${key}` } })
  t.equal((await flood(new URL(start.headers.get('location') ?? '', app.url), 3 * MIB, { headers: { authorization: `Bearer ${key}` } })).status, 202)
  await app.stop()
})

t.test('a grant has a share of its own, and what it began goes with it', async (t) => {
  const app = await startImagesApp(t, { registry: { maxUpload: '4MB' } })
  const channel = app.registry?.open({ read: [], write: ['some/thing'] })
  if (channel === undefined) throw new Error('no registry')
  const connection = (): RequestOptions => ({
    createConnection: () => {
      const [near, far] = duplexPair()
      channel.serve(far)
      return near
    }
  })
  const start = httpRequest('http://registry/v2/some/thing/blobs/uploads/', { method: 'POST', ...connection() })
  start.end()
  const [answer]: IncomingMessage[] = await once(start, 'response')
  answer?.resume()
  const target = new URL(answer?.headers.location ?? '', 'http://registry')
  t.equal((await flood(target, MIB, connection())).status, 202)
  const names = (): Promise<string[]> => readdir(join(app.dataDir, UPLOADS))
  t.equal((await names()).length, 1)
  channel.revoke()
  await eventually('the upload of the revoked grant is gone', async () => (await names()).length === 0)
  await app.stop()
})

t.test('one key begins a bounded number of uploads', async (t) => {
  const app = await startImagesApp(t)
  const statuses = new Set<number>()
  for (let count = 0; count <= 256; count++) statuses.add((await fetch(`${app.url}/v2/some/thing/blobs/uploads/`, { method: 'POST', headers: AUTHORIZATION })).status)
  t.same([...statuses], [202, 429])
  await app.stop()
})

t.test('uploads whose clients leave before they are answered are removed or count', async (t) => {
  const app = await startImagesApp(t)
  const { hostname, port } = new URL(app.url)
  for (let count = 0; count < 200; count++) {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined)
    socket.write(`POST /v2/some/thing/blobs/uploads/ HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-length: ${count % 2}\r\n\r\n`)
    setTimeout(() => { socket.destroy() }, 1 + count % 10)
    if (count % 20 === 0) await delay(20)
  }
  await delay(1000)
  let last = 202
  while (last === 202) last = (await fetch(`${app.url}/v2/some/thing/blobs/uploads/`, { method: 'POST', headers: AUTHORIZATION })).status
  t.equal(last, 429)
  // An answer that was on its way as its client left is one that the client may have read.
  const left = async (): Promise<number> => (await readdir(join(app.dataDir, UPLOADS))).length
  await eventually('no more are left than one key may have', async () => await left() <= 256, { limitMs: 30_000, explain: async () => `${await left()} are left` })
  await app.stop()
})

t.test('what an earlier server was taking is removed at the start', async (t) => {
  const dataDir = await temporaryFolder(t)
  const left = join(dataDir, UPLOADS, 'f0e5b3a0-0000-4000-8000-000000000000')
  await mkdir(left, { recursive: true })
  await writeFile(join(left, 'data'), Buffer.alloc(MIB))
  const app = await startImagesApp(t, { dataDir })
  t.same(await readdir(join(dataDir, UPLOADS, '..')), [])
  await app.stop()
})
