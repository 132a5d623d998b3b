// A backup has the files as they were at one moment, with their names and times, and what is put back is like them.
import { spawn } from 'node:child_process'
import { chown, link, lstat, mkdir, readFile, readdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { makeBackup } from '../../../core/backup/backup.ts'
import { Copier } from '../../../core/backup/copier.ts'
import { resolveCoreConfig } from '../../../core/config/resolve.ts'
import { sourceOfValue } from '../../../core/config/source.ts'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { createDiskSpace } from '../../../core/fs/disk-space.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { testFolder } from '../../helpers/folder.ts'
import { withoutMounts } from '../../helpers/rights.ts'
import { smallDisk } from '../../helpers/small-disk.ts'
import { backedUp, berth, keepOne } from './bare-backup.ts'

const commands = createHostCommands()
const LARGE = 2 ** 20

t.test('two names of one file are two names of one file again, which the backup has once', async (t) => {
  const { dataDir, folder } = await backedUp(t)
  await writeFile(join(dataDir, 'disks/volume'), Buffer.alloc(LARGE, 'v'))
  await mkdir(join(dataDir, 'disks/uses'))
  await link(join(dataDir, 'disks/volume'), join(dataDir, 'disks/uses/volume'))
  const backup = join(folder, 'second')
  t.match(await berth(dataDir, 'backup', backup), { code: 0 })
  t.notOk((await readdir(join(backup, 'data/disks/uses'))).includes('volume'))
  const target = join(folder, 'target')
  t.match(await berth(target, 'restore', backup), { code: 0 })
  const [disk, use] = [await stat(join(target, 'disks/volume')), await stat(join(target, 'disks/uses/volume'))]
  t.equal(use.ino, disk.ino)
  t.equal(disk.nlink, 2)
})

t.test('a file that goes or is replaced while files are copied counts, and one that comes does not: images may be pulled meanwhile', async (t) => {
  const folder = testFolder(t, { data: { kept: 'kept', goes: 'goes', replaced: 'old' }, copy: {} })
  const dataDir = join(folder, 'data')
  const disk = createDiskSpace(folder, { bytes: 0, inodes: 0 })
  const copier = new Copier({ dataDir, target: join(folder, 'copy'), leftOut: new Set(), commands, disk })
  await copier.pass()
  await writeFile(join(dataDir, 'comes'), '')
  t.equal(await copier.changed(), undefined)
  await writeFile(join(dataDir, 'next'), 'new')
  await rename(join(dataDir, 'next'), join(dataDir, 'replaced'))
  t.equal(await copier.changed(), 'replaced')
  await copier.pass()
  t.equal(await copier.changed(), undefined)
  await rm(join(dataDir, 'goes'))
  t.equal(await copier.changed(), 'goes')
})

t.test('what is copied again needs no more room than it takes beyond its former copy', { skip: withoutMounts }, async (t) => {
  const target = await smallDisk(t, 24)
  const dataDir = testFolder(t, { grows: 'x', other: 'x' })
  const copier = new Copier({ dataDir, target, leftOut: new Set(), commands, disk: createDiskSpace(target, { bytes: 2 ** 20, inodes: 10 }) })
  const write = async (name: string, mib: number, letter: string): Promise<void> => { await writeFile(join(dataDir, name), Buffer.alloc(mib * LARGE, letter)) }
  await write('other', 12, 'o')
  await copier.pass()
  await write('other', 14, 'p')
  await copier.pass()
  t.equal((await readFile(join(target, 'other'))).toString('latin1', 0, 1), 'p')
  await write('grows', 12, 'g')
  await t.rejects(copier.pass(), /too little space/)
  // Copied after the other, whose former copy is still there by then.
  await write('other', 1, 'q')
  await t.rejects(copier.pass(), /too little space/)
  t.equal((await stat(join(target, 'other'))).size, 14 * LARGE, 'nothing is begun')
})

t.test('a machine that prints and writes all the time holds no backup up: its logs may be rotated, and its disk is copied a few times', async (t) => {
  const folder = testFolder(t, { data: { instances: { x: { qemu: {}, 'output.log': 'printed', disk: '0', 'image.json': '0' } } }, copy: {} })
  const [dataDir, target] = [join(folder, 'data'), join(folder, 'copy')]
  const machine = join(dataDir, 'instances/x')
  const vmm = spawn('sleep', ['600'], { cwd: join(machine, 'qemu') })
  t.teardown(() => vmm.kill())
  const copier = new Copier({ dataDir, target, leftOut: new Set(), commands, disk: createDiskSpace(folder, { bytes: 0, inodes: 0 }) })
  await copier.pass()
  await rename(join(machine, 'output.log'), join(machine, 'output.log.1'))
  await writeFile(join(machine, 'output.log'), '')
  t.equal(await copier.changed(), undefined)
  for (let count = 1; count < 6; count++) {
    await writeFile(join(machine, 'disk'), 'x'.repeat(count + 1))
    await writeFile(join(machine, 'next'), String(count))
    await rename(join(machine, 'next'), join(machine, 'image.json'))
    t.equal(await copier.changed(), 'instances/x/image.json')
    await copier.pass()
  }
  t.equal((await stat(join(target, 'instances/x/disk'))).size, 3, 'what is written in place is copied three times')
  t.equal(await readFile(join(target, 'instances/x/image.json'), 'utf8'), '5', 'what takes the place of another is copied each time')
})

t.test('another name of a file must be of one that the manifest has named before', async (t) => {
  const { backup, folder } = await backedUp(t)
  const file = join(backup, 'manifest.json')
  const manifest = JSON.parse(await readFile(file, 'utf8'))
  const disk = manifest.entries.find(({ path }: { path: string }) => path === 'disks/disk')
  for (const sameAs of ['../outside', '/etc/passwd', 'disks', 'disks/later', 'disks/other']) {
    await writeFile(file, JSON.stringify({ ...manifest, entries: [...manifest.entries, { ...disk, path: 'disks/other', sameAs }, { ...disk, path: 'disks/later' }] }))
    t.match(await berth(join(folder, 'target'), 'restore', backup), { code: 1, said: /the backup names "disks\/other"/ }, sameAs)
  }
  t.notOk((await readdir(folder)).includes('target'))
})

t.test('a file that takes the place of others during the backup, without a change of the database, is in it with all that it tells of', async (t) => {
  const { dataDir, folder } = await backedUp(t)
  const standby = join(dataDir, 'disks/one/standby')
  await mkdir(standby, { recursive: true })
  await writeFile(join(dataDir, 'a-large'), Buffer.alloc(LARGE, 'x'))
  await writeFile(join(dataDir, 'disks/one/memory'), 'the memory')
  await writeFile(join(standby, 'image.json'), 'raw')
  let wasHeld = false
  const held: HostCommands = {
    async run (file, args, options) {
      if (file === 'cp' && !wasHeld) {
        wasHeld = true
        await writeFile(join(standby, 'memory.zst'), 'compressed')
        await writeFile(join(standby, '.image.json'), 'compressed')
        await rename(join(standby, '.image.json'), join(standby, 'image.json'))
        await rm(join(dataDir, 'disks/one/memory'))
      }
      return await commands.run(file, args, options)
    }
  }
  const backup = join(folder, 'second')
  await makeBackup({ config: resolveCoreConfig(sourceOfValue({}, dataDir), { BERTH_DATA_DIR: dataDir }), folder: backup, commands: held })
  if (!wasHeld) {
    t.comment('this file system shares blocks, so no command copies the large file')
    return
  }
  const there = join(backup, 'data/disks/one')
  t.equal(await readFile(join(there, 'standby/image.json'), 'utf8'), 'compressed')
  t.equal(await readFile(join(there, 'standby/memory.zst'), 'utf8').catch(() => 'gone'), 'compressed')
  t.same(await readdir(there), ['standby'])
})

t.test('a restored file has its time to the nanosecond', async (t) => {
  const { dataDir, folder } = await backedUp(t)
  await commands.run('touch', ['--date=@1700000000.123456789', join(dataDir, 'disks/disk')])
  await writeFile(join(dataDir, "disks/a b'c\n"), 'x')
  t.match(await berth(dataDir, 'backup', join(folder, 'second')), { code: 0 })
  t.match(await berth(join(folder, 'target'), 'restore', join(folder, 'second')), { code: 0 })
  for (const name of ['disks/disk', "disks/a b'c\n"]) {
    const [was, is] = await Promise.all([dataDir, join(folder, 'target')].map(async (place) => await stat(join(place, name), { bigint: true })))
    t.equal(is?.mtimeNs, was?.mtimeNs)
  }
  const file = join(folder, 'second/manifest.json')
  const manifest = JSON.parse(await readFile(file, 'utf8'))
  const entries = manifest.entries.map(({ mtimeNs, ...entry }: { mtimeNs?: string }) => mtimeNs === undefined ? entry : { ...entry, mtimeMs: 1_700_000_000_123 })
  await writeFile(file, JSON.stringify({ ...manifest, entries }))
  t.match(await berth(join(folder, 'older'), 'restore', join(folder, 'second')), { code: 0 })
  t.equal((await stat(join(folder, 'older/disks/disk'), { bigint: true })).mtimeNs, 1_700_000_000_123_000_000n, 'a backup of an earlier version has milliseconds')
})

t.test('the room that a server has left for the next one is in no backup', async (t) => {
  const { dataDir, backup } = await backedUp(t)
  t.ok(await stat(join(dataDir, 'reserve')))
  t.notOk((await readdir(join(backup, 'data'))).includes('reserve'))
})

t.test('a link in the data folder itself ends the backup, as what it leads to would not be in it', async (t) => {
  const { dataDir, folder } = await backedUp(t)
  const elsewhere = join(folder, 'larger')
  await rename(join(dataDir, 'disks'), elsewhere)
  await symlink(elsewhere, join(dataDir, 'disks'))
  t.match(await berth(dataDir, 'backup', join(folder, 'second')), { code: 1, said: /disks is a symbolic link.*mount/ })
})

t.test('what root puts back belongs to whom the data folder belonged', { skip: process.getuid?.() === 0 ? false : 'needs root' }, async (t) => {
  const { dataDir, folder } = await backedUp(t)
  for (const name of ['', ...await readdir(dataDir)]) await chown(join(dataDir, name), 12345, 12346)
  t.match(await berth(dataDir, 'backup', join(folder, 'second')), { code: 0 })
  const target = join(folder, 'target')
  t.match(await berth(target, 'restore', join(folder, 'second')), { code: 0 })
  for (const name of ['', ...await readdir(target)]) {
    const { uid, gid } = await lstat(join(target, name))
    t.same([uid, gid], [12345, 12346], name)
  }
})

t.test('what root brings back of the database belongs to whom the data folder belongs', { skip: process.getuid?.() === 0 ? false : 'needs root' }, async (t) => {
  const { dataDir } = await backedUp(t)
  for (const name of ['', ...await readdir(dataDir)]) await chown(join(dataDir, name), 12345, 12346)
  await keepOne(dataDir)
  t.match(await berth(dataDir, 'restore-database', '1'), { code: 0 })
  for (const name of ['berth.db', 'database-copies', 'database-copies/1.db', 'database-copies/1.json', 'database-copies/2.db', 'database-copies/2.json', 'lock.db']) {
    const { uid, gid } = await lstat(join(dataDir, name))
    t.same([uid, gid], [12345, 12346], name)
  }
})
