// Runs the command that the command line names. Exit codes: 1 for a failure, 2 for a wrong command line.
import { BackupFailed } from '../backup/backup.ts'
import { BackupUnusable } from '../backup/manifest.ts'
import { RestoreRefused } from '../backup/restore.ts'
import { ConfigError } from '../config/resolve.ts'
import { CONFIG_VARIABLE, ENVIRONMENT_OVERRIDES } from '../config/environment.ts'
import { DatabaseOutdated } from '../data/copies/before-upgrade.ts'
import { CopyFailed } from '../data/copies/keep.ts'
import { NoSuchCopy } from '../data/copies/restore.ts'
import { DataFolderInUse } from '../data/lock.ts'
import { DatabaseInUse } from '../data/running-hosts.ts'
import { RestoreUnfinished } from '../data/unfinished.ts'
import { BerthError } from '../errors/define.ts'
import { DiskShort } from '../fs/disk-space.ts'
import { PluginStartFailed } from '../plugins/lifecycle.ts'
import { version } from '../version.ts'
import { SERVER_COMMANDS, type ServerCommand } from './catalogue.ts'
import { UsageError, type CliContext } from './command.ts'

/** failures that an operator can put right */
const EXPECTED = [ConfigError, DataFolderInUse, BerthError, PluginStartFailed, NoSuchCopy, CopyFailed, DatabaseOutdated, DatabaseInUse, BackupFailed, BackupUnusable, RestoreRefused, DiskShort, RestoreUnfinished] as const

/** Runs one command line and returns the exit code. */
export async function runCommandLine (args: readonly string[], context: CliContext): Promise<number> {
  const [name, ...rest] = args
  if (name === '--version') return say(context, version)
  if (name === '--help' || name === '-h' || name === 'help' || rest.includes('--help') || rest.includes('-h')) return say(context, usage())
  const command = SERVER_COMMANDS.find(candidate => candidate.name === name)
  try {
    if (command === undefined) throw new UsageError(name === undefined ? 'a command is needed' : `there is no command "${name}"`)
    return await (await command.load()).run(rest, context)
  } catch (error) {
    return failure(error, command, context)
  }
}

function failure (error: unknown, command: ServerCommand | undefined, { complain }: CliContext): number {
  if (isUsageError(error)) {
    complain(`berth: ${error.message}`)
    complain(command === undefined ? usage() : `usage: berth ${command.name} ${command.usage}`)
    return 2
  }
  // What the operator can put right is told in one sentence; any other failure is told with its stack.
  const isExpected = EXPECTED.some((kind) => error instanceof kind)
  complain(`berth: ${error instanceof Error ? (isExpected ? error.message : error.stack ?? error.message) : String(error)}`)
  return 1
}

function isUsageError (error: unknown): error is Error {
  return error instanceof UsageError || (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS_'))
}

function say ({ print }: CliContext, text: string): number {
  print(text)
  return 0
}

function usage (): string {
  const width = Math.max(...ENVIRONMENT_OVERRIDES.map(row => row.name.length))
  return [
    'usage: berth COMMAND',
    '',
    ...SERVER_COMMANDS.flatMap(command => [`  ${command.name} ${command.usage}`, `      ${command.summary}`]),
    '  --help, --version',
    '',
    'The configuration is FILE, or the file that $BERTH_CONFIG names, or /etc/berth/berth.yaml, or built-in defaults.',
    'These environment variables override it:',
    ...[...ENVIRONMENT_OVERRIDES, { name: CONFIG_VARIABLE, description: 'configuration file, when --config is absent' }]
      .map(row => `  ${row.name.padEnd(width)}  ${row.description}`)
  ].join('\n')
}
