// `npm run install-service` and `npm run uninstall-service`.
import { createHostCommands } from '../../core/process/run.ts'
import { install } from './install.ts'
import { Interrupted, interruption } from './interruption.ts'
import { parseOptions } from './options.ts'
import { System } from './system.ts'
import { uninstall } from './uninstall.ts'

async function main (args: readonly string[]): Promise<void> {
  const { verb, root, node, purge } = parseOptions(args)
  if (root === undefined && process.getuid?.() !== 0) throw new Error('this changes the system: run it as root')
  // All users may read the files, whatever the umask of the user who installs.
  process.umask(0o022)
  const system = root === undefined ? new System(createHostCommands()) : undefined
  const say = (line: string): void => console.log(line)
  const common = { root: root ?? '/', system, say }
  if (verb === 'uninstall') return await uninstall({ ...common, purge })
  const isChanged = await install({ ...common, node, signal: interruption() })
  if (system !== undefined && isChanged) console.log('make yourself a key with `berth token create --name NAME`; logs: journalctl -u berth -u berth-egress')
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : String(error))
  process.exitCode = error instanceof Interrupted ? error.exitCode : 1
})
