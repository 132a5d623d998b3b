// What must stay free on the disk: bytes and inodes, on disks large and small.
import { mkdir, open, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { isDiskFull } from '../../../core/fs/disk-full.ts'
import { createDiskSpace, type DiskSpace } from '../../../core/fs/disk-space.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { failureOf } from '../../helpers/failure.ts'
import { temporaryFolder } from '../bare-app.ts'
import { withoutMounts } from '../../helpers/rights.ts'

const MIB = 2 ** 20
const commands = createHostCommands()
const root = { skip: withoutMounts }

async function smallDisk (t: Test, reserve: { bytes: number, inodes: number }): Promise<{ folder: string, disk: DiskSpace }> {
  const folder = await temporaryFolder(t)
  await commands.run('mount', ['-t', 'tmpfs', '-o', 'size=64m,nr_inodes=1000', 'tmpfs', folder])
  t.teardown(() => commands.run('umount', ['-l', folder]))
  return { folder, disk: createDiskSpace(folder, reserve) }
}

t.test('of a small disk a twentieth of the bytes stays free, and a tenth of the inodes', root, async (t) => {
  const { folder, disk } = await smallDisk(t, { bytes: 2 ** 40, inodes: 2 ** 30 })
  await disk.check()
  await disk.check({ bytes: 60 * MIB, inodes: 890 })
  t.match(await failureOf(disk.check({ bytes: 61 * MIB })), { name: 'DiskShort', message: 'the disk of the data folder has too little space: 64MB free, 61MB needed, and 3MB must stay free' })
  const short = await failureOf(disk.check({ inodes: 910 }))
  t.match(short, { name: 'DiskShort', message: /inodes for 9\d\d more files, 910 needed, and 100 must stay free/ })
  t.ok(isDiskFull(short))
  t.same(Object.keys(await disk.free()), ['bytes', 'inodes'])
  await writeFile(join(folder, 'f'), Buffer.alloc(62 * MIB))
  t.match(await failureOf(disk.check()), { name: 'DiskShort' })
})

t.test('who lets bytes in is told before more than four megabytes have come, however fast', root, async (t) => {
  const { folder, disk } = await smallDisk(t, { bytes: 20 * MIB, inodes: 0 })
  // A twentieth of 64 MB is less than what comes between two looks, so that what is asserted is that the looks come.
  const watch = disk.watch()
  const file = await open(join(folder, 'f'), 'w')
  // In one turn of the event loop: no timer can help.
  for (let at = 0; at < 64 && !watch.signal.aborted; at++) {
    watch.count(MIB)
    if (!watch.signal.aborted) await file.write(Buffer.alloc(MIB))
  }
  await file.close()
  t.match(watch.signal.reason, { name: 'DiskShort' })
  const { bavail, bsize } = await statfs(folder)
  t.ok(bavail * bsize > 0, `${bavail * bsize} bytes are free`)
  watch.stop()
})

t.test('who does not count is told too, also of inodes', root, async (t) => {
  const { folder, disk } = await smallDisk(t, { bytes: 0, inodes: 500 })
  const watch = disk.watch()
  const other = disk.watch()
  other.stop()
  const told = new Promise(resolve => watch.signal.addEventListener('abort', resolve))
  for (let count = 0; count < 950; count++) await mkdir(join(folder, String(count)))
  await told
  t.match(watch.signal.reason, { name: 'DiskShort', message: /inodes/ })
  t.notOk(other.signal.aborted, 'who has stopped is not')
})
