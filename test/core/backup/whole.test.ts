// A backup has the files as they were at one moment, with their names and times, and what is put back is like them.
import { link, mkdir, readFile, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { backedUp, berth } from './bare-backup.ts'

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
