// Full disks: a pull ends, says so, and gives back what it took.
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { guardDisk } from '../../../plugins/images/disk-guard.ts'
import { failureOf } from '../../helpers/failure.ts'
import { startImagesApp, temporaryFolder } from '../../helpers/images-app.ts'
import { pushLayout, writeLayout } from '../../helpers/oci.ts'
import { tar } from '../../helpers/tar.ts'
import { startUpstreamRegistry } from '../../helpers/upstream-registry.ts'
import { eventually } from '../../helpers/eventually.ts'
import { withoutMounts } from '../../helpers/rights.ts'

const commands = createHostCommands()

t.test('space that runs short on the way ends the work', async (t) => {
  let free = 1000
  const guard = await guardDisk(async () => free, 100, 900)
  t.notOk(guard.signal.aborted)
  free = 99
  await new Promise((resolve) => guard.signal.addEventListener('abort', resolve))
  guard.stop()
  t.match(guard.signal.reason, { reason: 'disk-full', message: /too little space/ })
  t.match(await failureOf(guardDisk(async () => 1000, 100, 901)), { reason: 'disk-full' })
})

t.test('a disk that is full ends each step of a pull with a failed image and nothing left', { skip: withoutMounts }, async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const name = `${upstream.host}/big:1`
  await pushLayout(await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [tar([{ path: 'f', content: Buffer.alloc(16 * 2 ** 20) }])] }]), name)
  // Compressed it is tiny, so nothing forbids the start: in 8 MB the unpacking does not fit, in 24 MB the packing.
  for (const [sizeMb, tool] of [[8, 'umoci'], [24, 'mkfs.erofs']] as const) {
    const dataDir = await temporaryFolder(t)
    const folder = join(dataDir, 'images')
    await mkdir(folder)
    await commands.run('mount', ['-t', 'tmpfs', '-o', `size=${sizeMb}m`, 'tmpfs', folder])
    t.teardown(() => commands.run('umount', ['-l', folder]))
    const app = await startImagesApp(t, { dataDir, registry: false, images: { minFree: '0B' } })
    await app.request('POST', '/images', { name })
    const image = await app.settled(name)
    t.match(image, { status: 'failed', error: /disk of the data folder (is full|has too little space)/, size_bytes: null }, `${tool}: ${String(image.error)}`)
    await eventually('nothing is left behind', async () => (await readdir(folder)).length === 0, { explain: async () => (await readdir(folder)).join(', ') })
    await app.stop()
  }
})

t.test('a delete on a disk that has no room even for a folder frees that of the image', { skip: withoutMounts }, async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const name = `${upstream.host}/there:1`
  await pushLayout(await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [tar([{ path: 'f', content: 'x' }])] }]), name)
  const dataDir = await temporaryFolder(t)
  const folder = join(dataDir, 'images')
  await mkdir(folder)
  await commands.run('mount', ['-t', 'tmpfs', '-o', 'size=64m,nr_inodes=200', 'tmpfs', folder])
  t.teardown(() => commands.run('umount', ['-l', folder]))
  const app = await startImagesApp(t, { dataDir, registry: false, images: { minFree: '0B' } })
  await app.request('POST', '/images', { name })
  t.match(await app.settled(name), { status: 'ready' })
  const filling = join(folder, 'filling')
  await mkdir(filling)
  await t.rejects(async () => { for (let count = 0; count < 200; count++) await writeFile(join(filling, String(count)), '') }, { code: 'ENOSPC' })
  t.equal((await app.request('DELETE', `/images/${name}`)).status, 204)
  t.same(await readdir(folder), ['filling'])
  await app.stop()
})

t.test('an image of many small files leaves inodes for others', { skip: withoutMounts }, async (t) => {
  const upstream = await startUpstreamRegistry(t)
  const name = `${upstream.host}/many:1`
  const files = Array.from({ length: 20_000 }, (_, at) => ({ path: `f${at}`, content: 'x' }))
  await pushLayout(await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [tar(files)] }]), name)
  const dataDir = await temporaryFolder(t)
  await commands.run('mount', ['-t', 'tmpfs', '-o', 'size=200m,nr_inodes=10000,mode=711', 'tmpfs', dataDir])
  t.teardown(() => commands.run('umount', ['-l', dataDir]))
  const app = await startImagesApp(t, { dataDir, registry: false, images: { minFree: '0B' } })
  await app.request('POST', '/images', { name })
  t.match(await app.settled(name), { status: 'failed', error: /too little space: inodes for \d+ more files, and 1000 must stay free|is full/ })
  await eventually('nothing is left behind', async () => (await readdir(join(dataDir, 'images'))).length === 0)
  await app.stop()
})
