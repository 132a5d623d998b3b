// A data folder in which a command that puts something back was ended midway: only that command goes on with it.
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { markUnfinished } from '../../../core/data/unfinished.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { withoutMounts } from '../../helpers/rights.ts'
import { backedUp, berth, keepOne } from './bare-backup.ts'

const commands = createHostCommands()

t.test('a backup does not take the place of a data folder whose database was half brought back', async (t) => {
  const { dataDir, backup } = await backedUp(t)
  await writeFile(join(dataDir, 'disks/later'), 'made since the backup')
  await keepOne(dataDir)
  await markUnfinished(dataDir, 'restore-database', '1')
  t.match(await berth(dataDir, 'restore', backup), { code: 1, said: /is not whole: .*berth restore-database 1/ })
  t.ok(await stat(join(dataDir, 'disks/later')))
  t.same(await readdir(join(dataDir, 'database-copies')), ['1.db', '1.json'])
  t.match(await berth(dataDir, 'restore-database', '1'), { code: 0 })
  t.match(await berth(dataDir, 'token', 'list'), { code: 0 })
})

t.test('a copy of the database does not make a half-restored data folder a whole one', async (t) => {
  const { dataDir } = await backedUp(t)
  await keepOne(dataDir)
  await markUnfinished(dataDir, 'restore', '/some/backup')
  t.match(await berth(dataDir, 'restore-database', '1'), { code: 1, said: /is not whole: .*berth restore \/some\/backup/ })
  t.match(await berth(dataDir, 'token', 'list'), { code: 1, said: /is not whole/ })
})

t.test('no backup is made of a data folder that is not whole', async (t) => {
  const { dataDir, folder } = await backedUp(t)
  await keepOne(dataDir)
  await markUnfinished(dataDir, 'restore-database', '1')
  t.match(await berth(dataDir, 'backup', join(folder, 'second')), { code: 1, said: /is not whole: .*berth restore-database 1/ })
  t.match(await berth(dataDir, 'restore-database', '1'), { code: 0 })
  t.match(await berth(dataDir, 'backup', join(folder, 'second')), { code: 0 })
})

t.test('a restore that is done again has the room that its first run took', { skip: withoutMounts }, async (t) => {
  const { backup, folder } = await backedUp(t, { bytes: 16 * 2 ** 20 })
  const small = join(folder, 'small')
  await mkdir(small)
  await commands.run('mount', ['-t', 'tmpfs', '-o', 'size=24M,mode=711', 'tmpfs', small])
  t.teardown(async () => { await commands.run('umount', [small]) })
  // What a kill leaves that comes when nearly all is there.
  await mkdir(join(small, 'disks'))
  await writeFile(join(small, 'disks/disk'), Buffer.alloc(15 * 2 ** 20, 'x'))
  await markUnfinished(small, 'restore', backup)
  t.match(await berth(small, 'restore', backup), { code: 0 })
  t.equal((await stat(join(small, 'disks/disk'))).size, 16 * 2 ** 20)
})
