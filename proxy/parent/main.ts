// berth-egress: the program that stands between VMs with an egress policy and the rest of the world.
import { parseArgs } from 'node:util'
import { inheritedSockets } from '../config/inherited.ts'
import { ConfigFault, loadConfig } from '../config/load.ts'
import { createLog } from '../log/log.ts'
import { becomeUser } from '../workers/become-user.ts'
import { prepareLaunch } from '../workers/launch.ts'
import { startProgram } from './program.ts'

const USAGE = 'usage: node main.js --config FILE [--user UID:GID] [--check-config]'

const log = createLog(line => { process.stderr.write(line) })

async function main (): Promise<void> {
  const values = readArguments()
  // eslint-disable-next-line no-restricted-properties -- a program of its own reads the environment here, and hands it on
  const { env } = process
  const { launch, requireReadable } = prepareLaunch(env)
  // Before anything is read or made, so that all files are read and made as this user.
  if (values.user !== undefined) becomeUser(values.user)
  requireReadable()
  const config = await loadConfig(values.config)
  if (values['check-config']) return
  // Files that this program makes are only for its user.
  process.umask(0o077)
  // systemd passes sockets in the environment.
  const program = await startProgram({ config, inherited: inheritedSockets(env, process.pid), launch, log })
  let stopping = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) return
      stopping = true
      program.stop().then(() => process.exit(0), fail)
    })
  }
}

/** @throws ConfigFault with how it is called */
function readArguments () {
  try {
    const { values: { config, ...rest } } = parseArgs({ options: { config: { type: 'string' }, user: { type: 'string' }, 'check-config': { type: 'boolean', default: false } } })
    if (config === undefined) throw new Error('--config is needed')
    return { config, ...rest }
  } catch (error) {
    throw new ConfigFault(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`)
  }
}

/** A process in an unknown state must not go on deciding over credentials: the supervisor starts a new one, and until then nothing gets out. */
function fail (error: unknown): void {
  if (error instanceof ConfigFault) process.stderr.write(`${error.message}\n`)
  else log.error('stopped by a failure', error)
  process.exit(1)
}

process.on('uncaughtException', fail)
process.on('unhandledRejection', fail)
main().catch(fail)
