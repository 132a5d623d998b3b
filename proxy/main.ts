// berth-egress: the program that stands between VMs with an egress policy and the rest of the world.
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { inheritedSockets } from './config/inherited.ts'
import { ConfigFault, loadConfig } from './config/load.ts'
import { createLog } from './log/log.ts'
import { becomeUser } from './process/become-user.ts'
import { startProgram } from './program.ts'

const USAGE = 'usage: node main.js --config FILE [--user UID:GID] [--check-config]'

const log = createLog(line => { process.stderr.write(line) })

async function main (): Promise<void> {
  const { values } = parseArgs({ options: { config: { type: 'string' }, user: { type: 'string' }, 'check-config': { type: 'boolean', default: false } } })
  if (values.config === undefined) throw new ConfigFault(USAGE)
  // Before anything is read or made: all of it is that user's affair.
  if (values.user !== undefined) becomeUser(values.user)
  const config = await loadConfig(values.config)
  if (values['check-config']) return
  // Everything that this program makes is its user's alone.
  process.umask(0o077)
  letHeapGrow()
  // eslint-disable-next-line no-restricted-properties -- systemd passes sockets in the environment, and this is the one place that reads it
  const program = await startProgram(config, inheritedSockets(process.env, process.pid), log)
  let stopping = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) return
      stopping = true
      program.stop().then(() => process.exit(0), fail)
    })
  }
}

/**
 * V8 counts the buffers of bodies against a limit that grows with what lives in its heap, and that is little here: after a few seconds of a large transfer it collected all garbage
 * for every ten megabytes that passed, which took more time than the transfer. With a limit of five times what lives, it does not.
 */
function letHeapGrow (): void {
  setFlagsFromString('--heap-growing-percent=400')
}

/** What is in an unknown state must not go on deciding over credentials: the supervisor starts a new one, and until then nothing gets out. */
function fail (error: unknown): void {
  if (error instanceof ConfigFault) process.stderr.write(`${error.message}\n`)
  else log.error('stopped by a failure', error)
  process.exit(1)
}

process.on('uncaughtException', fail)
process.on('unhandledRejection', fail)
main().catch(fail)
