// The default configuration of a server, measured by a program of its own in a network namespace that is the "host" for the server there: so this machine's network stays as it is, while machines have
// all that they have by default.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { HostCommands } from '../core/contracts/services.ts'
import { createHostCommands } from '../core/process/run.ts'
import type { ServerOptions } from '../setup/server/process.ts'
import { inFolder } from './folder.ts'

export interface InsideOptions {
  readonly folder: string
  readonly runs: number
  /** name of the server's own network namespace */
  readonly namespace: string
}

const uplink = 'wan'

/** in the form of the configuration */
export const defaultShape = { size: '1GB', vcpus: 2, argv: ['/bin/sh', '-c', 'echo ready; sleep 600'] } as const

/** Runs a program with `InsideOptions` as its only argument in a network namespace of its own. */
export async function runInOwnNetwork (program: URL, runs: number): Promise<void> {
  await inFolder(async (folder, signal) => {
    const options: InsideOptions = { folder, runs, namespace: `berth-bench-${randomBytes(3).toString('hex')}` }
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', '--net', process.execPath, fileURLToPath(program), JSON.stringify(options)], { stdio: ['ignore', 'inherit', 'inherit'], signal, killSignal: 'SIGKILL' })
    const [code] = await once(child, 'exit')
    if (existsSync(`/run/netns/${options.namespace}`)) await createHostCommands().run('ip', ['netns', 'delete', options.namespace])
    if (code !== 0) throw new Error(`the measuring program ended with ${String(code)}`)
  })
}

/** Gives this program's network namespace a default route that leads nowhere. */
export async function makeUplink (commands: HostCommands): Promise<void> {
  await commands.run('ip', ['-batch', '-'], { input: `link set dev lo up\nlink add ${uplink} type veth peer name ${uplink}-far\naddress add 198.51.100.1/24 dev ${uplink}\nlink set dev ${uplink} up\nlink set dev ${uplink}-far up\n` })
}

/** What a server has by default, and tests and benchmarks otherwise turn off. */
export function defaultPlugins (namespace: string): NonNullable<ServerOptions['plugins']> {
  return { networking: { config: { namespace, uplink } }, resources: {} }
}
