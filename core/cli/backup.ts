// `berth backup FOLDER` and `berth restore FOLDER`.
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { makeBackup } from '../backup/backup.ts'
import { checkBackup, requireEmpty, restoreBackup } from '../backup/restore.ts'
import type { Manifest } from '../backup/manifest.ts'
import { clean } from '../clean-text.ts'
import { resolveCoreConfig } from '../config/resolve.ts'
import type { Config } from '../config/schema.ts'
import { prepareDataFolder } from '../data/folder.ts'
import { lockDataFolder } from '../data/lock.ts'
import { createHostCommands } from '../process/run.ts'
import { UsageError, type CliContext, type Command } from './command.ts'
import { findConfig } from './find-config.ts'

const NAMED_TORN = 20

export const backup: Command = {
  async run (args, context) {
    const { config, configFile, folder } = await given('backup', args, context)
    const manifest = await makeBackup({ config, folder, commands: createHostCommands(), ...configFile === undefined ? {} : { configFile } })
    warnOfTorn(manifest, context)
    context.print(`${folder} is a whole backup of ${manifest.dataDir}: ${counted(manifest)}`)
    return 0
  }
}

export const restore: Command = {
  async run (args, context) {
    const { config, folder } = await given('restore', args, context)
    const options = { config, folder, commands: createHostCommands() }
    const manifest = await checkBackup(options)
    await requireEmpty(config)
    await prepareDataFolder(config.server.dataDir)
    const lock = await lockDataFolder(config.server.dataDir)
    try {
      await restoreBackup(options, manifest)
    } finally {
      await lock.release()
    }
    warnOfTorn(manifest, context)
    context.print(`${config.server.dataDir} is as ${manifest.dataDir} was at ${manifest.madeAt}: ${counted(manifest)}`)
    return 0
  }
}

async function given (name: string, args: readonly string[], { environment }: CliContext): Promise<{ config: Config, configFile: string | undefined, folder: string }> {
  const { values, positionals: [folder, ...more] } = parseArgs({ args: [...args], allowPositionals: true, options: { config: { type: 'string' } } })
  if (folder === undefined || folder === '' || more.length > 0) throw new UsageError(`${name} needs one folder`)
  const { source, file } = await findConfig(values.config, environment)
  return { config: resolveCoreConfig(source, environment), configFile: file, folder: resolve(folder) }
}

function counted ({ entries }: Manifest): string {
  return `${entries.filter(({ kind }) => kind === 'file').length} files and the database`
}

function warnOfTorn ({ torn }: Manifest, { complain }: CliContext): void {
  if (torn.length === 0) return
  complain('these files changed while they were copied; of a machine\'s disk that is no state that it ever had:')
  for (const path of torn.slice(0, NAMED_TORN)) complain(`  ${clean(path)}`)
  if (torn.length > NAMED_TORN) complain(`  and ${torn.length - NAMED_TORN} more`)
}
