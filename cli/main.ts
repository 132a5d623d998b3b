#!/usr/bin/env node
// The command `berth`. The server's own commands go to the server's program; all others talk to a server, and load nothing of it.
import { isServerCommand } from '../core/cli/catalogue.ts'

const args = process.argv.slice(2)
if (isServerCommand(args)) {
  await import('../core/main.ts')
} else if (args[0] === 'complete' && args[1] === '--') {
  const [{ suggest }, { processEnvironment }] = await Promise.all([import('./completion/suggest.ts'), import('./environment.ts')])
  await suggest(args.slice(2), processEnvironment())
} else {
  const { runClient } = await import('./run.ts')
  process.exit(await runClient(args))
}
