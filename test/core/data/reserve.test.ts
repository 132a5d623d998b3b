// A full disk, really full: what is there can be deleted, and a server starts on it.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Knex } from 'knex'
import { pino } from 'pino'
import t from 'tap'
import { resolveCoreConfig } from '../../../core/config/resolve.ts'
import { sourceOfValue } from '../../../core/config/source.ts'
import { openReserve } from '../../../core/data/reserve.ts'
import { openDatabase } from '../../../core/db/open.ts'
import { createDiskSpace } from '../../../core/fs/disk-space.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { testFolder } from '../../helpers/folder.ts'
import { withoutMounts } from '../../helpers/rights.ts'
import { smallDisk } from '../../helpers/small-disk.ts'

const PROGRAM = fileURLToPath(new URL('programs/on-full-disk.js', import.meta.url))
const skip = withoutMounts
const MIB = 2 ** 20

/** Both servers in a mount namespace of their own, whose end takes the file system with it. The first may end by a signal. */
function onSmallDisk (folder: string, end: 'stop' | 'kill'): unknown[] {
  const script = `mount -t tmpfs -o size=24M tmpfs '${folder}' && for order in ${end} again; do '${process.execPath}' --enable-source-maps '${PROGRAM}' '${folder}' $order; done`
  const { stdout, stderr } = spawnSync('setpriv', ['--pdeathsig', 'KILL', 'unshare', '--mount', '--propagation', 'private', 'sh', '-c', script], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  const lines = stdout.split('\n').filter((line) => line.startsWith('['))
  if (lines.length !== 2) throw new Error(stderr)
  return lines.map((line): unknown => JSON.parse(line))
}

for (const [end, how] of [['stop', 'in order'], ['kill', 'by kill -9']] as const) {
  t.test(`on a full disk rows can be deleted, also after a thousand were added, and by the next server after one that ended ${how}`, { skip }, async (t) => {
    t.strictSame(onSmallDisk(testFolder(t), end), [
      ['200 {"left":19}', '200 {"grown":true}', '200 {"left":18}'],
      ['200 {"left":17}', '200 {"left":16}']
    ])
  })
}

t.test('a database has free pages from its first hold on, and gets those again that were taken, unless that could fill the disk', { skip }, async (t) => {
  const commands = createHostCommands()
  const freeBytes = async (database: Knex): Promise<number> => Number((await database.raw('PRAGMA freelist_count'))[0].freelist_count) * 4096
  const held = async (dataDir: string): Promise<{ readonly database: Knex, hold (): Promise<void> }> => {
    const reserve = await openReserve(resolveCoreConfig(sourceOfValue({}, dataDir), { BERTH_DATA_DIR: dataDir }), { commands, log: pino({ level: 'silent' }), disk: createDiskSpace(dataDir, { bytes: 0, inodes: 0 }) })
    const database = openDatabase(`sqlite:${dataDir}/berth.db`)
    t.teardown(async () => { await database.destroy() })
    await database.raw('CREATE TABLE kept (bytes BLOB)')
    return { database, hold: async () => { await (await reserve.hold(database))() } }
  }
  const { database, hold } = await held(testFolder(t))
  await hold()
  t.ok(await freeBytes(database) >= 4 * MIB)
  await database.raw('INSERT INTO kept VALUES (zeroblob(?))', [3 * MIB])
  t.ok(await freeBytes(database) < 2 * MIB)
  await hold()
  t.ok(await freeBytes(database) >= 4 * MIB)
  t.same((await database('sqlite_master').where({ type: 'table' })).map(({ name }: { name: string }) => name), ['kept'])

  const small = await smallDisk(t, 14)
  const other = await held(small)
  await other.hold()
  t.equal(await freeBytes(other.database), 0)
  await other.database.destroy()
})
