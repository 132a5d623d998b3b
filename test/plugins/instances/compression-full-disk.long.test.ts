// Compressed memory images on a disk that is full: both ways fail clearly, and the image stays as it was.
import { chmod, mkdtemp, readdir, rm, rmdir, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { fillMemory, running } from './compressing.ts'
import { until } from './crash.ts'
import { withoutMounts } from '../../helpers/rights.ts'

async function smallDisk (t: Test): Promise<string> {
  const disk = await mkdtemp(join(tmpdir(), 'berth-small-disk-'))
  await createHostCommands().run('mount', ['-t', 'tmpfs', '-o', 'size=32m,mode=711', 'tmpfs', disk])
  t.teardown(async () => {
    await createHostCommands().run('umount', [disk])
    await rmdir(disk)
  })
  await chmod(disk, 0o711)
  return disk
}

const needsRoot = { skip: withoutMounts }

t.test('on a full disk a compression fails, and leaves the image as it was', needsRoot, async (t) => {
  const disk = await smallDisk(t)
  const web = await running(t, { dataDir: join(disk, 'data') })
  await fillMemory(web, 18)
  await web.call('POST', '/instances/web/standby', { compression: { enabled: true, algorithm: 'lz4' } })
  await until(async () => /error: compression: failed after \d+ ms, the image stays as it is: .*the disk may be full/.test(await web.log()))
  t.same(await web.image(), ['image.json', 'state'])
  t.equal((await stat(join(web.folder, 'memory'))).size, 18 * 2 ** 20)
  t.match(await web.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  t.equal(web.host.vm.restoredFrom?.memory.length === 0, false)
  await web.app.stop()
})

t.test('on a full disk a compressed image is not restored, and stays', needsRoot, async (t) => {
  const disk = await smallDisk(t)
  const web = await running(t, { dataDir: join(disk, 'data') })
  web.host.onStep = async (step) => { if (step === 'captured') await writeFile(join(web.folder, 'memory'), 'many words '.repeat(1_500_000)) }
  await web.call('POST', '/instances/web/standby', { compression: { enabled: true } })
  await web.compressed()
  await writeFile(join(disk, 'filler'), Buffer.alloc(22 * 2 ** 20))
  t.match(await web.call('POST', '/instances/web/restore'), { status: 409, body: { code: 'insufficient_resources', message: /^restore: the disk .* full/ } })
  t.match((await web.call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
  t.same(await web.image(), ['image.json', 'memory.tar.zst', 'state'])
  t.notOk(await web.hasMemory())
  t.match(await web.call('POST', '/instances/web/fork', { name: 'fork' }), { status: 409, body: { code: 'insufficient_resources' } })
  t.equal((await readdir(join(web.dataDir, 'instances'))).length, 1)
  await rm(join(disk, 'filler'))
  t.match(await web.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  t.equal(web.host.vm.restoredFrom?.memory, 'many words '.repeat(1_500_000))
  await web.app.stop()
})
