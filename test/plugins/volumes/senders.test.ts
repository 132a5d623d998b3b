// Senders of archives that go away or send nothing while it is their turn, for which others wait.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { request, type ClientRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { unpack } from '../../../plugins/volumes/archive/unpack.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { eventually } from '../../helpers/eventually.ts'
import { end, entry } from '../../helpers/raw-tar.ts'
import { startWithVolumes, type VolumesApp } from './app.ts'

const ARCHIVE = gzipSync(Buffer.concat([entry({ path: 'file', content: 'x' }), end]))

function send (app: VolumesApp, name: string, key = ADMIN_KEY): ClientRequest {
  const address = app.app.http.server.address()
  if (address === null || typeof address === 'string') throw new Error('it does not listen on a port')
  const call = request({
    host: '127.0.0.1', port: address.port, method: 'POST', path: `/volumes/from-archive?name=${name}&size_gb=1`, headers: { authorization: `Bearer ${key}`, 'content-type': 'application/gzip' }
  })
  call.on('error', () => undefined).flushHeaders()
  return call
}

t.test('a sender that goes away while it waits for its turn leaves the turn to the next one', async (t) => {
  const app = await startWithVolumes(t, { listen: true, sections: { volumes: { config: { archiveConcurrency: 1 } } } })
  const first = send(app, 'first')
  first.write(ARCHIVE.subarray(0, 20))
  await eventually('the first has its turn', async () => (await app.files()).some((name) => name.startsWith('unpacking/')))
  const second = send(app, 'second')
  const come = once(app.app.http.server, 'request')
  second.write(ARCHIVE.subarray(0, 20))
  await come
  const third = app.upload(ARCHIVE, 'name=third&size_gb=1')
  second.destroy()
  await eventually('the server knows', async () => await new Promise<boolean>((resolve) => { app.app.http.server.getConnections((_error, count) => { resolve(count === 1) }) }))
  first.end(ARCHIVE.subarray(20))
  t.equal((await once(first, 'response'))[0].statusCode, 201)
  t.match(await third, { status: 201 })
  t.match(await app.upload(ARCHIVE, 'name=second&size_gb=1'), { status: 201 }, 'nothing keeps the name')
})

t.test('an archive whose key is revoked while it comes, or while it waits for its turn, becomes no volume', async (t) => {
  const app = await startWithVolumes(t, { listen: true, sections: { volumes: { config: { archiveConcurrency: 1 } } } })
  const { id, key } = (await app.call('POST', '/keys', { name: 'leaked', scopes: ['volume:write'] })).body
  const calls = ['first', 'second'].map((name) => send(app, name, String(key)))
  for (const call of calls) call.write(ARCHIVE.subarray(0, 20))
  await eventually('one has its turn', async () => (await app.files()).some((name) => name.startsWith('unpacking/')))
  const ends = calls.map(async (call) => await Promise.race([once(call, 'error').then(() => 'cut off'), once(call, 'response').then(([answer]) => Number(answer.statusCode))]))
  t.equal((await app.call('DELETE', `/keys/${String(id)}`)).status, 204)
  for (const call of calls) if (!call.destroyed) call.end(ARCHIVE.subarray(20))
  for (const end of await Promise.all(ends)) t.ok(end === 'cut off' || end === 401, `it ends: ${end}`)
  t.same((await app.call('GET', '/volumes')).body, [])
})

t.test('slow senders of one key keep nobody else from a turn', async (t) => {
  const app = await startWithVolumes(t, { listen: true })
  const slow = ['first', 'second', 'third', 'fourth'].map((name) => send(app, name))
  t.teardown(() => { for (const call of slow) call.destroy() })
  for (const call of slow) call.write(ARCHIVE.subarray(0, 20))
  const unpacked = async (): Promise<number> => (await app.files()).filter((name) => name.startsWith('unpacking/')).length
  await eventually('two have their turn', async () => await unpacked() === 2)
  const key = String((await app.call('POST', '/keys', { name: 'other', scopes: ['volume:write'] })).body['key'])
  t.match(await app.upload(ARCHIVE, 'name=other&size_gb=1', { authorization: `Bearer ${key}` }), { status: 201 })
  t.equal(await unpacked(), 2, 'the others of the slow key still wait')
})

t.test('a sender that sends nothing is not waited for without end, and one that is only slow is', async (t) => {
  const pace = { patienceMs: 300, bytesPerSecond: 100 }
  const silent = new PassThrough()
  silent.write(ARCHIVE.subarray(0, 20))
  await t.rejects(unpack(silent, await temporaryFolder(t), { sizeGb: 1, maxEntries: 10, pace }), { code: 'invalid_archive', message: /waited for too long/ })
  const slow = Readable.from((async function * () {
    for (let at = 0; at < ARCHIVE.length; at += 20) {
      yield ARCHIVE.subarray(at, at + 20)
      await new Promise((resolve) => { setTimeout(resolve, 100) })
    }
  })(), { objectMode: false })
  t.match(await unpack(slow, await temporaryFolder(t), { sizeGb: 1, maxEntries: 10, pace }), { sizeGb: 1 })
})

async function temporaryFolder (t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-senders-test-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  return folder
}
