// Volumes and snapshots, on a scripted host: what a copy of an instance keeps of them, what it needs to go on, and what is refused.
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { snapshotsPlugin } from '../../../plugins/snapshots/index.ts'
import { systemClock } from '../../../plugins/snapshots/clock.ts'
import { tar } from '../../helpers/tar.ts'
import { startWithVolumes, type VolumesApp } from '../volumes/app.ts'

interface Copied extends VolumesApp {
  readonly id: string
  take (kind: 'Standby' | 'Stopped'): Promise<string>
  /** what the disk of the overlay holds, in a file of the instance or of a snapshot */
  overlay (of: string): string
}

/** With an instance `web` that reads the volume `data`, and what it wrote to its overlay. */
async function running (t: Test, fields: Record<string, unknown> = { readonly: true, overlay: true, overlay_size: '16MB' }): Promise<Copied> {
  const app = await startWithVolumes(t, { plugins: [snapshotsPlugin(systemClock)] })
  await app.makeVolume('data', { id: 'data' })
  const id = await app.make('web', { volumes: [{ volume_id: 'data', mount_path: '/data', ...fields }] })
  await app.waitFor('web', 'Running')
  return {
    ...app,
    id,
    async take (kind) {
      const { status, body, text } = await app.call('POST', '/instances/web/snapshots', { kind })
      if (status !== 201) throw new Error(`the snapshot answered ${status} ${text}`)
      return String(body['id'])
    },
    overlay: (of) => join(app.dataDir, of, 'volumes/data.ext4')
  }
}

/** The writable disk begins with a block that no file system uses. */
async function mark (path: string, text: string): Promise<void> {
  const bytes = await readFile(path)
  bytes.write(text.padEnd(16), 0)
  await writeFile(path, bytes)
}
const marked = async (path: string): Promise<string> => (await readFile(path)).toString('latin1', 0, 16).trim()

for (const kind of ['Standby', 'Stopped'] as const) {
  t.test(`a ${kind} snapshot holds what was written to an overlay, and a fork of it reads the volume too`, async (t) => {
    const app = await running(t)
    const { call, id, overlay } = app
    if (kind === 'Stopped') await call('POST', '/instances/web/stop')
    await mark(overlay(`instances/${id}`), 'then')
    const snapshot = await app.take(kind)
    t.ok(Number((await call('GET', `/snapshots/${snapshot}`)).body['size_bytes']) > 0)
    await mark(overlay(`instances/${id}`), 'now')
    t.equal(await marked(overlay(`snapshots/${snapshot}`)), 'then')
    t.equal((await stat(overlay(`snapshots/${snapshot}`))).mode & 0o077, 0)
    await call('DELETE', '/instances/web')
    t.same(await app.attachments('data'), [], 'a snapshot keeps no volume')
    const { status, body } = await call('POST', `/snapshots/${snapshot}/fork`, { name: 'copy', target_state: 'Running' })
    t.match({ status, volumes: body['volumes'] }, { status: 201, volumes: [{ volume_id: 'data', mount_path: '/data', readonly: true, overlay: true }] })
    t.equal(await marked(overlay(`instances/${String(body['id'])}`)), 'then')
    t.match(await app.attachments('data'), [{ instance_id: String(body['id']) }])
    await call('DELETE', `/snapshots/${snapshot}`)
    await call('DELETE', '/instances/copy')
    t.same(await app.attachments('data'), [])
  })

  t.test(`an instance goes back to a ${kind} snapshot with what it had written then, while its volumes are the same`, async (t) => {
    const app = await running(t)
    const { call, id, overlay } = app
    if (kind === 'Stopped') await call('POST', '/instances/web/stop')
    await mark(overlay(`instances/${id}`), 'then')
    const snapshot = await app.take(kind)
    if (kind === 'Standby') await call('POST', '/instances/web/stop')
    await mark(overlay(`instances/${id}`), 'now')
    const back = async (): Promise<unknown> => await call('POST', `/instances/web/snapshots/${snapshot}/restore`, { target_state: kind })
    t.match(await back(), { status: 200, body: { state: kind, volumes: [{ volume_id: 'data', overlay: true }] } })
    t.equal(await marked(overlay(`instances/${id}`)), 'then')
    t.match(await app.attachments('data'), [{ instance_id: id }])
    await call('POST', '/instances/web/restore')
    await call('POST', '/instances/web/stop')
    t.equal((await call('DELETE', '/instances/web/volumes/data')).status, 200)
    t.match(await back(), { status: 409, body: { code: 'conflict', message: /other volumes/ } })
    t.same((await call('GET', '/instances/web')).body['volumes'], [])
  })
}

t.test('memory that knows a volume does not go on once somebody could have written it', async (t) => {
  const app = await running(t, { readonly: true })
  const { call } = app
  const [withMemory, diskOnly] = [await app.take('Standby'), await call('POST', '/instances/web/stop').then(async () => await app.take('Stopped'))]
  t.match(await call('POST', `/snapshots/${withMemory}/fork`, { name: 'first' }), { status: 201 })
  t.match(await call('POST', `/instances/web/snapshots/${withMemory}/restore`, { target_state: 'Standby' }), { status: 200 })
  for (const name of ['first', 'web']) await call('DELETE', `/instances/${name}`)
  await app.make('writer', { volumes: [{ volume_id: 'data', mount_path: '/data' }] })
  t.match(await call('POST', `/snapshots/${withMemory}/fork`, { name: 'second' }), { status: 409, body: { code: 'volume_in_use' } })
  t.match(await call('POST', `/snapshots/${diskOnly}/fork`, { name: 'second' }), { status: 409, body: { code: 'volume_in_use' } })
  await call('DELETE', '/instances/writer')
  t.match(await call('POST', `/snapshots/${withMemory}/fork`, { name: 'second' }), { status: 409, body: { code: 'conflict', message: /volume data was attached for writing/ } })
  t.equal((await call('GET', '/instances/second')).status, 404)
  t.same(await app.attachments('data'), [])
  t.match(await call('POST', `/snapshots/${diskOnly}/fork`, { name: 'second' }), { status: 201 }, 'a disk alone says nothing about it')
  t.match(await call('POST', `/snapshots/${withMemory}/fork`, { name: 'third', target_state: 'Stopped' }), { status: 201 }, 'nor does one whose memory is left out')
  for (const name of ['second', 'third']) await call('DELETE', `/instances/${name}`)
  await call('DELETE', '/volumes/data')
  for (const snapshot of [withMemory, diskOnly]) t.match(await call('POST', `/snapshots/${snapshot}/fork`, { name: 'fourth' }), { status: 409, body: { code: 'conflict', message: /volume data, which was attached, does not exist/ } })
})

t.test('memory that knows a volume does not go on with another one that has its id', async (t) => {
  const app = await running(t, { readonly: true })
  const { call } = app
  const [withMemory, diskOnly] = [await app.take('Standby'), await call('POST', '/instances/web/stop').then(async () => await app.take('Stopped'))]
  t.equal((await call('DELETE', '/instances/web')).status, 204)
  t.equal((await call('DELETE', '/volumes/data')).status, 204)
  await app.makeVolume('data', { id: 'data' })
  t.match(await call('POST', `/snapshots/${withMemory}/fork`, { name: 'first' }), { status: 409, body: { code: 'conflict', message: /volume data was .* made anew/ } })
  t.equal((await call('GET', '/instances/first')).status, 404)
  t.same(await app.attachments('data'), [])
  t.match(await call('POST', `/snapshots/${diskOnly}/fork`, { name: 'first' }), { status: 201 }, 'a disk alone says nothing about it')
  await call('DELETE', '/instances/first')
  await call('DELETE', '/volumes/data')
  t.match(await app.upload(gzipSync(tar([])), 'name=data&size_gb=1&id=data'), { status: 201 })
  t.match(await call('POST', `/snapshots/${withMemory}/fork`, { name: 'second' }), { status: 409, body: { code: 'conflict' } })
})

t.test('a snapshot of an instance that writes a volume is of its disk alone, and no fork of it gets the volume', async (t) => {
  const app = await running(t, {})
  const { call } = app
  t.match(await call('POST', '/instances/web/snapshots', { kind: 'Standby' }), { status: 501, body: { code: 'not_supported', message: /volume data \(at \/data\)/ } })
  await call('POST', '/instances/web/stop')
  const snapshot = await app.take('Stopped')
  t.match(await call('POST', `/snapshots/${snapshot}/fork`, { name: 'copy' }), { status: 501, body: { code: 'not_supported' } })
  t.match(await call('POST', `/instances/web/snapshots/${snapshot}/restore`, {}), { status: 200, body: { volumes: [{ volume_id: 'data', readonly: false }] } }, 'the instance itself keeps its own')
  t.equal((await app.attachments('data') as unknown[]).length, 1)
})
