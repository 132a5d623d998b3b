// The login that the tools of MariaDB and MySQL get: the configured one, and no other.
import { readFile, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { runTool } from '../../../core/db/copy/dump-tool.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { temporaryFolder } from '../bare-app.ts'

const URL = 'mysql://berth:secret@db.example:3307/berth'
const real = createHostCommands()
const without = existsSync('/usr/bin/mariadb-dump') ? false : 'mariadb-dump is missing: install the package mariadb-client'

t.test('a .my.cnf in the home of the server\'s user changes nothing', { skip: without }, async (t) => {
  const home = await temporaryFolder(t)
  await writeFile(join(home, '.my.cnf'), '[client]\nhost=other.example\nuser=other\n[mariadb-dump]\nport=1\n')
  for (const tool of ['mariadb-dump', 'mariadb']) {
    const said: string[] = []
    const commands: HostCommands = {
      async run (file, args, options) {
        const result = await real.run(file, args, { ...options, env: { ...options?.env, HOME: home } })
        said.push(result.stdout)
        return result
      }
    }
    await runTool(commands, [tool], { url: URL, folder: home, args: ['--print-defaults'] })
    const arguments_ = said.join('\n')
    t.match(arguments_, /--host=db\.example/)
    t.match(arguments_, /--port=3307/)
    t.notMatch(arguments_, /other|--port=1\b/)
  }
})

t.test('the tools use the database as the server does: whatever its certificate is, without transaction ids of a cluster, and with rows of any size', async (t) => {
  const folder = await temporaryFolder(t)
  let text = ''
  let environment: unknown
  const commands: HostCommands = {
    async run (_file, args, options) {
      const file = args.find((argument) => argument.startsWith('--defaults'))?.split('=')[1]
      if (file !== undefined) [text, environment] = [await readFile(file, 'utf8'), options?.env]
      return { stdout: '', stderr: '' }
    }
  }
  await runTool(commands, ['mysqldump'], { url: URL, folder, args: [] })
  t.match(text, /^\[client\]\n(?:.+\n)*loose-ssl-verify-server-cert=OFF\n/)
  t.match(text, /^max_allowed_packet=1G$/m)
  t.match(text, /\[mysqldump\]\nloose-set-gtid-purged=OFF\n/)
  t.match(environment, { MYSQL_TEST_LOGIN_FILE: '/dev/null' })
})
