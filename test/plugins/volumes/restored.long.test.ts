// Volumes of instances after `berth restore`: an instance's name of a disk is that of the disk, and of no copy of it.
import { copyFile, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { berth } from '../../core/backup/bare-backup.ts'
import { temporaryData } from '../instances/app.ts'
import { VolumeFiles } from '../../../plugins/volumes/files.ts'
import { volumePaths } from '../../../plugins/volumes/paths.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { startWithVolumes } from './app.ts'
import { running } from './attached.ts'

t.test('what a VM writes on its volume after a restore of the backup is on the volume, also once it is detached', async (t) => {
  const { app, dataDir, host, id } = await running(t)
  const folder = await temporaryData(t)
  t.match(await berth(dataDir, 'backup', join(folder, 'backup')), { code: 0 })
  for (const vm of host.vms) vm.set({ status: 'gone' })
  await app.stop()
  const other = join(folder, 'other')
  t.match(await berth(other, 'restore', join(folder, 'backup')), { code: 0 })
  const next = await startWithVolumes(t, { host, dataDir: other })
  t.match(await next.call('POST', '/instances/web/start'), { status: 200 })
  await next.waitFor('web', 'Running')
  const disk = host.vm.spec.disks.map(({ path }) => path).find((path) => path.startsWith(join(other, 'volumes/uses', id))) ?? 'none'
  await writeFile(disk, 'written by the VM', { flag: 'r+' })
  t.match(await next.call('POST', '/instances/web/stop'), { status: 200 })
  t.match(await next.call('DELETE', '/instances/web'), { status: 204 })
  t.equal((await readFile(join(other, 'volumes/disks/data.img'))).subarray(0, 17).toString(), 'written by the VM')
})

t.test('another file in the place of an instance\'s name of a disk is neither used nor thrown away', async (t) => {
  const paths = volumePaths(await temporaryData(t))
  const files = new VolumeFiles(paths, createHostCommands())
  await files.prepare()
  await writeFile(files.disk('data'), 'the disk')
  const use = await files.lend('web', 'data', undefined)
  t.equal(await files.lend('web', 'data', undefined), use)
  await rm(use)
  await copyFile(files.disk('data'), `${use}.copy`)
  await rename(`${use}.copy`, use)
  await t.rejects(files.lend('web', 'data', undefined), { code: 'volume_damaged', message: /volumes\/uses\/web\/data\.img/ })
  await writeFile(use, 'what the VM wrote')
  await files.takeBack('web', 'data')
  await t.rejects(stat(use), { code: 'ENOENT' })
  t.equal(await readFile(`${files.disk('data')}.of-web`, 'utf8'), 'what the VM wrote')
  t.equal(await readFile(files.disk('data'), 'utf8'), 'the disk')
  t.same(await files.strangers(new Set(['data'])), ['data.img.of-web'])
  await mkdir(join(paths.uses, 'web'))
  await files.takeBack('web', 'data')
})
