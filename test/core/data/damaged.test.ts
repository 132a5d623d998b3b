// A database that can no longer be read: the copy of before an upgrade takes its place.
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { backedUp, berth, keepOne } from '../backup/bare-backup.ts'

t.test('a damaged database is not replaced without a copy of it, and whoever wants that is told how', async (t) => {
  const { dataDir } = await backedUp(t)
  await keepOne(dataDir)
  const file = join(dataDir, 'berth.db')
  await writeFile(file, 'no database '.repeat(1000))
  t.match(await berth(dataDir, 'restore-database', '1'), { code: 1, said: new RegExp(`could not be copied .*\\n.*without a copy .*move ${file} to another folder`) })
  await rename(file, join(dataDir, 'disks/damaged.db'))
  t.match(await berth(dataDir, 'restore-database', '1'), { code: 0 })
  t.match(await berth(dataDir, 'token', 'list'), { code: 0 })
})
