// A full disk, really full: a machine outlives a standby, a fork and a snapshot that have no room, and nothing is left of them.
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { skipWithout } from '../../setup/structure/deleted.ts'
import { look as lookAt, startCounter, type Seen } from '../helpers/counter.ts'
import { failureOf } from '../helpers/failure.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { withoutMounts } from '../helpers/rights.ts'
import { startTestServer } from '../helpers/server.ts'
import { fillDisk, smallDisk } from '../helpers/small-disk.ts'

const full = { status: 409, error: { code: 'insufficient_resources' } }

t.test('standby, fork and snapshot on a full disk fail clearly, leave nothing, and the machine goes on', { timeout: 300_000, skip: withoutMounts || skipWithout('snapshots') }, async (t) => {
  const disk = await smallDisk(t, 700)
  const dataDir = join(disk, 'data')
  await mkdir(dataDir, { mode: 0o711 })
  await t.test('with a server on it', async (t) => {
    // An image takes some megabytes; the default keeps a gigabyte free. A template that is being made would fill the disk while the guest writes.
    const server = await startTestServer(t, { server: { dataDir }, plugins: { images: { config: { minFree: '1MB' } }, instances: { config: { templates: { enabled: false } } } } })
    const look = async (id: string, above?: number): Promise<Seen> => await lookAt(server, id, above)
    const id = await startCounter(server, await push(server, await busyboxImage(), 'full/busybox:latest'), 'full')
    const before = await look(id)
    const folder = join(dataDir, 'instances')
    const filler = join(disk, 'filler')
    const files = (await readdir(join(folder, id))).sort()

    // A twentieth, 35 MB, must stay free: with more than that it begins, and meets the end of the disk or the watch over it.
    await fillDisk(filler, 40 * 2 ** 20)
    t.match(await failureOf(server.sdk.instances.standby(id)), full)
    await fillDisk(filler, 8 * 2 ** 20)
    t.match(await failureOf(server.sdk.instances.standby(id)), full)
    t.match(await failureOf(server.sdk.instances.fork(id, { name: 'full-fork', from_running: true })), full)
    t.match(await failureOf(server.sdk.instances.snapshots.create(id, { kind: 'Standby' })), full)
    t.match(await server.sdk.instances.get(id), { state: 'Running', has_snapshot: false })
    const after = await look(id, before.counter)
    t.equal(after.nonce, before.nonce)
    t.ok(after.counter > before.counter, 'it counts on')
    t.strictSame((await readdir(join(folder, id))).sort(), files, 'no partial files')
    t.strictSame(await readdir(folder), [id], 'no half of a fork')
    t.strictSame(await readdir(join(dataDir, 'snapshots')), [], 'no half of a snapshot')

    await rm(filler)
    t.match(await server.sdk.instances.standby(id), { state: 'Standby' })
    t.match(await server.sdk.instances.restore(id), { state: 'Running' })
    t.equal((await look(id)).nonce, before.nonce)
    await server.sdk.instances.delete(id)
  })
})
