// Compressed memory images on a disk that is full: both ways fail clearly, and the image stays as it was.
import { readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { compressing, fillMemory, running } from './compressing.ts'
import { until } from './crash.ts'
import { withoutMounts } from '../../helpers/rights.ts'
import { fillDisk, smallDisk } from '../../helpers/small-disk.ts'

const needsRoot = { skip: withoutMounts }

t.test('on a full disk a compression fails, and leaves the image as it was', { ...needsRoot }, async (t) => {
  const disk = await smallDisk(t, 32)
  const web = await running(t, { dataDir: join(disk, 'data') })
  await fillMemory(web, 18)
  await web.call('POST', '/instances/web/standby', { compression: { enabled: true, algorithm: 'lz4' } })
  await until(async () => /error: compression: failed after \d+ ms, the image stays as it is: .*(the disk may be full|has too little space)/.test(await web.log()))
  t.same(await web.image(), ['image.json', 'state'])
  t.equal((await stat(join(web.folder, 'memory'))).size, 18 * 2 ** 20)
  t.match(await web.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  t.equal(web.host.vm.restoredFrom?.memory.length === 0, false)
  await web.app.stop()
})

t.test('on a full disk a compressed image is not restored, and stays', { ...needsRoot }, async (t) => {
  const disk = await smallDisk(t, 32)
  const web = await running(t, { dataDir: join(disk, 'data') })
  web.host.onStep = async (step) => { if (step === 'captured') await writeFile(join(web.folder, 'memory'), 'many words '.repeat(1_500_000)) }
  await web.call('POST', '/instances/web/standby', { compression: { enabled: true } })
  await web.compressed()
  await fillDisk(join(disk, 'filler'), 6 * 2 ** 20)
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

t.test('a compression leaves as much of the disk free as must stay free: it does not begin with less, and ends when there is less', { ...needsRoot }, async (t) => {
  const disk = await smallDisk(t, 48)
  const web = await running(t, { dataDir: join(disk, 'data') })
  const filler = join(disk, 'filler')
  const refused = /error: compression: failed after \d+ ms, the image stays as it is: the disk of the data folder has too little space: .* must stay free/g
  const refusals = async (): Promise<number> => [...(await web.log()).matchAll(refused)].length
  await fillMemory(web, 8)
  web.host.onStep = ((write) => async (...step: Parameters<NonNullable<typeof write>>) => {
    await write?.(...step)
    if (step[0] === 'captured') await fillDisk(filler, 2 ** 20)
  })(web.host.onStep)
  await web.call('POST', '/instances/web/standby', { compression: { enabled: true, algorithm: 'lz4' } })
  await until(async () => await refusals() === 1)
  t.same(await web.image(), ['image.json', 'state'])
  await rm(filler)
  t.match(await web.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })

  await fillMemory(web, 8)
  await web.call('POST', '/instances/web/standby', { compression: { enabled: true, algorithm: 'zstd', level: 19 } })
  await compressing(web)
  await fillDisk(filler, 2 ** 20)
  await until(async () => await refusals() === 2)
  t.same(await web.image(), ['image.json', 'state'])
  await rm(filler)
  t.match(await web.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  await web.app.stop()
})
