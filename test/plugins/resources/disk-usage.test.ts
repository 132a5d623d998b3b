// What images and the registry take on disk.
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createDiskUsage } from '../../../plugins/resources/disk-usage.ts'
import { testFolder } from '../../helpers/folder.ts'

const BLOCKS = 64 * 1024

t.test('files are counted by the disk space that they take, at any depth', async (t) => {
  const folder = testFolder(t, { images: { a: { 'rootfs.erofs': 'x'.repeat(BLOCKS) } }, registry: { docker: { blobs: { one: 'x'.repeat(BLOCKS), two: 'x'.repeat(BLOCKS) } } }, volumes: { v: 'x'.repeat(BLOCKS) } })
  t.same(await createDiskUsage(folder).now(), { imageBytes: BLOCKS, registryBytes: 2 * BLOCKS })
  t.same(await createDiskUsage(join(folder, 'nothing')).now(), { imageBytes: 0, registryBytes: 0 }, 'a new server has none')
})

t.test('it is measured again when what is known is old, and nobody who is in a hurry waits for that', async (t) => {
  const folder = testFolder(t, { images: { a: 'x'.repeat(BLOCKS) } })
  let time = 0
  const usage = createDiskUsage(folder, () => time)
  t.match(await usage.last(), { imageBytes: BLOCKS }, 'the first has to')
  await writeFile(join(folder, 'images/b'), 'x'.repeat(BLOCKS))
  time = 10_000
  t.match(await usage.now(), { imageBytes: BLOCKS })
  time = 10_001
  t.match(await usage.last(), { imageBytes: BLOCKS })
  t.match(await usage.now(), { imageBytes: 2 * BLOCKS })
  t.match(await usage.last(), { imageBytes: 2 * BLOCKS })
  await rm(folder, { recursive: true })
  time = 30_000
  t.match(await usage.now(), { imageBytes: 0 })
})
