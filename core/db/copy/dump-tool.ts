// Runs the tools of MariaDB and MySQL on the configured database. They read the login from a file that exists only while they run: the password is in no argument and no environment.
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands } from '../../contracts/services.ts'
import { HostCommandMissing } from '../../process/errors.ts'

/** Runs the first of the tools that this host has, on the database of the URL. `folder` is for the server alone. @throws HostCommandMissing that names the package */
export async function runTool (commands: HostCommands, tools: readonly string[], { url, folder, args }: { url: string, folder: string, args: readonly string[] }): Promise<void> {
  const { options, name, password } = loginOf(new URL(url))
  const file = join(folder, '.login.tmp')
  // A file that a kill has left has the same name.
  await rm(file, { force: true })
  try {
    await writeFile(file, options, { mode: 0o600, flag: 'wx' })
    let missing: unknown
    for (const tool of tools) {
      try {
        await commands.run('setpriv', ['--pdeathsig', 'KILL', '--', ...await found(commands, tool), `--defaults-extra-file=${file}`, ...args, name], { secrets: password === '' ? [] : [password] })
        return
      } catch (error) {
        if (!HostCommandMissing.is(error)) throw error
        missing ??= error
      }
    }
    throw missing
  } finally {
    await rm(file, { force: true })
  }
}

/** setpriv reports a missing tool in words only. @throws HostCommandMissing */
async function found (commands: HostCommands, tool: string): Promise<string[]> {
  await commands.run(tool, ['--version'])
  return [tool]
}

function loginOf (url: URL): { options: string, name: string, password: string } {
  const password = decodeURIComponent(url.password)
  const socketPath = url.searchParams.get('socketPath')
  const place = socketPath === null ? { host: url.hostname, port: url.port === '' ? '3306' : url.port, protocol: 'tcp' } : { socket: socketPath }
  const values = { user: decodeURIComponent(url.username), ...password === '' ? {} : { password }, ...place }
  const options = ['[client]', ...Object.entries(values).map(([key, value]) => `${key}="${escaped(value)}"`), ''].join('\n')
  return { options, name: decodeURIComponent(url.pathname.slice(1)), password }
}

/** Quotes a value for an option file of MySQL. */
function escaped (value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
