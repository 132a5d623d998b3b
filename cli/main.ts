#!/usr/bin/env node
// The command `berth`. The server's own commands are passed to the server's program; all others talk to a server, and load no code of it.
import { existsSync } from 'node:fs'
import { isServerCommand } from '../core/cli/catalogue.ts'

/** Missing in the package that `npm pack` makes, which contains the client only. */
const SERVER = new URL('../core/main.js', import.meta.url)

const args = process.argv.slice(2)
if (isServerCommand(args) && !existsSync(SERVER)) {
  process.stderr.write(`berth: ${args[0]} is a command of the server, and this is the client alone; a checkout installs the server: npm run install-service\n`)
  process.exitCode = 1
} else if (isServerCommand(args)) {
  await import('../core/main.ts')
} else if (args[0] === 'complete' && args[1] === '--') {
  const [{ suggest }, { processEnvironment }] = await Promise.all([import('./completion/suggest.ts'), import('./environment.ts')])
  await suggest(args.slice(2), processEnvironment())
} else {
  const { runClient } = await import('./run.ts')
  process.exit(await runClient(args))
}
