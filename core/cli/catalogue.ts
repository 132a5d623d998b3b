// The server's commands with their usage. The code of a command is loaded when it is called.
import type { Command } from './command.ts'

export interface ServerCommand {
  readonly name: string
  /** what may follow the name */
  readonly usage: string
  readonly summary: string
  readonly load: () => Promise<Command>
}

export const SERVER_COMMANDS: readonly ServerCommand[] = [
  { name: 'serve', usage: '[--config FILE]', summary: 'run the server', load: async () => (await import('./serve.ts')).serve },
  { name: 'check-config', usage: '[--config FILE]', summary: 'check the configuration and the plugins, and report every problem', load: async () => (await import('./check-config.ts')).checkConfig },
  { name: 'print-config', usage: '[--config FILE] | --defaults', summary: 'print the configuration as the server uses it, secrets masked; or every default with its description', load: async () => (await import('./print-config.ts')).printConfig },
  { name: 'token', usage: 'create --name NAME [--scopes a,b] [--repositories host/path,host/path/*] [--expires-in 30d] | list | revoke ID   [--config FILE]', summary: 'make, list or revoke API keys; create prints the key once', load: async () => (await import('./token.ts')).token },
  { name: 'restore-database', usage: '[NUMBER] [--config FILE]', summary: 'list the copies of the database from before upgrades, or bring one back; the server must not run', load: async () => (await import('./restore-database.ts')).restoreDatabase },
  { name: 'backup', usage: 'FOLDER [--config FILE]', summary: 'copy the data folder and the database to a new folder; the server and its machines may run', load: async () => (await import('./backup.ts')).backup },
  { name: 'restore', usage: 'FOLDER [--config FILE]', summary: 'put a backup into an empty data folder and an empty database', load: async () => (await import('./backup.ts')).restore }
]

/** Whether a command line calls one of the server's commands. `restore` is one when a folder follows: names of instances have no slash. */
export function isServerCommand ([name, ...rest]: readonly string[]): boolean {
  if (name === 'restore') return rest.some((arg) => arg.includes('/') || arg === '--config')
  return SERVER_COMMANDS.some((command) => command.name === name)
}
