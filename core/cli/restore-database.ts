// `berth restore-database [NUMBER]`: lists the copies of the database from before upgrades, or brings one back.
import { parseArgs } from 'node:util'
import { sizeBytes } from '../config/quantities.ts'
import { resolveCoreConfig } from '../config/resolve.ts'
import { listCopies } from '../data/copies/kept.ts'
import { restoreCopy } from '../data/copies/restore.ts'
import { prepareDataFolder } from '../data/folder.ts'
import { lockDataFolder } from '../data/lock.ts'
import { createDiskSpace } from '../fs/disk-space.ts'
import { createHostCommands } from '../process/run.ts'
import { formatSize } from '../units.ts'
import { UsageError, type Command } from './command.ts'
import { findConfig } from './find-config.ts'

export const restoreDatabase: Command = {
  async run (args, { environment, print }) {
    const { values, positionals: [wanted, ...more] } = parseArgs({ args: [...args], allowPositionals: true, options: { config: { type: 'string' } } })
    if (more.length > 0 || (wanted !== undefined && !/^[0-9]{1,9}$/.test(wanted))) throw new UsageError('restore-database takes the number of one copy')
    const config = resolveCoreConfig((await findConfig(values.config, environment)).source, environment)
    const { dataDir, minFree, minFreeInodes } = config.server
    if (wanted === undefined) {
      for (const copy of await listCopies(dataDir)) print(`${copy.number}  ${copy.madeAt}  ${formatSize(copy.bytes)}  by ${copy.madeBy}, ${copy.reason}`)
      return 0
    }
    await prepareDataFolder(dataDir)
    const lock = await lockDataFolder(dataDir)
    try {
      const disk = createDiskSpace(dataDir, { bytes: sizeBytes(minFree), inodes: minFreeInodes })
      const copy = await restoreCopy(Number(wanted), config, { dataDir, commands: createHostCommands(), disk, most: Math.max(1, config.database.keepCopies) })
      print(`copy ${copy.number}, made ${copy.madeAt} ${copy.reason}, is the database again; what it replaced is kept: restore-database lists it`)
      return 0
    } finally {
      await lock.release()
    }
  }
}
