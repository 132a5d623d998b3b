// Runs the tools of MariaDB and MySQL on the configured database. They read the login from a file that exists only while they run: the password is in no argument and no environment. They read no other file: what one in the
// user's home says would count for more.
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands } from '../../contracts/services.ts'
import { HostCommandMissing } from '../../process/errors.ts'

/** MySQL's own tools read `~/.mylogin.cnf` besides, whatever file is named. */
const NO_LOGIN_PATH = { MYSQL_TEST_LOGIN_FILE: '/dev/null' }

/**
 * As the server's own connection, which uses no TLS: MariaDB's tools verify a certificate by default since 11.4. A row may have any size. And a dump of MySQL's that sets transaction ids of a cluster cannot be loaded.
 * `loose-`: not every tool knows the option.
 */
const CLIENT_OPTIONS = ['loose-ssl-verify-server-cert=OFF', 'max_allowed_packet=1G']
const OTHER_OPTIONS = ['[mysqldump]', 'loose-set-gtid-purged=OFF']

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
        await commands.run('setpriv', ['--pdeathsig', 'KILL', '--', ...await found(commands, tool), `--defaults-file=${file}`, ...args, name], { secrets: password === '' ? [] : [password], env: NO_LOGIN_PATH })
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
  const options = ['[client]', ...Object.entries(values).map(([key, value]) => `${key}="${escaped(value)}"`), ...CLIENT_OPTIONS, ...OTHER_OPTIONS, ''].join('\n')
  return { options, name: decodeURIComponent(url.pathname.slice(1)), password }
}

/** Quotes a value for an option file of MySQL. */
function escaped (value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
