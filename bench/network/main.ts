// `npm run bench -- network`: iperf3 through an instance without a limit against the same VM on a bare TAP and bridge, and through a limited one against its limit.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createHostCommands } from '../../core/process/run.ts'
import { removeServerFolder } from '../../setup/server/process.ts'
import { boot, startBerth } from '../berth.ts'
import { inFolder } from '../folder.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'
import { templatesOff } from '../templates.ts'
import { makeIperfImage } from '../../test/helpers/iperf/image.ts'

/** The parameters of `inside.ts`. */
export interface InsideOptions {
  readonly folder: string
  readonly runs: number
  /** names of network namespaces; the server makes the first one itself */
  readonly namespaces: { readonly guests: string, readonly outside: string, readonly bare: string, readonly bareOutside: string }
}

/**
 * The measuring happens in a program of its own, in a network namespace that is the "host" for the server there: so this machine's network stays as it is, while the
 * guests' packets take the whole way that they would take through it.
 */
async function network ({ runs }: BenchOptions): Promise<void> {
  const commands = createHostCommands()
  const name = `berth-bench-${randomBytes(3).toString('hex')}`
  const namespaces = { guests: name, outside: `${name}-out`, bare: `${name}-bare`, bareOutside: `${name}-far` }
  try {
    await inFolder(async (folder, signal) => {
      await prepareSystem(join(folder, 'prepared'), signal)
      for (const made of [namespaces.outside, namespaces.bare, namespaces.bareOutside]) await commands.run('ip', ['netns', 'add', made])
      await measureInside({ folder, runs, namespaces }, signal)
    })
  } finally {
    for (const made of Object.values(namespaces)) if (existsSync(`/run/netns/${made}`)) await commands.run('ip', ['netns', 'delete', made])
  }
}

/** The namespace has no access to the packages that a guest system is made of. */
async function prepareSystem (folder: string, signal: AbortSignal): Promise<void> {
  const berth = await startBerth({ folder, plugins: templatesOff(), signal }, await makeIperfImage())
  try {
    await boot(berth, { name: 'first', argv: ['/bin/sh', '-c', 'echo ready; sleep 100'], size: '256MB' })
  } finally {
    await berth.server.stop()
  }
  await removeServerFolder(folder)
}

async function measureInside (options: InsideOptions, signal: AbortSignal): Promise<void> {
  const program = fileURLToPath(new URL('inside.js', import.meta.url))
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', '--net', process.execPath, program, JSON.stringify(options)], { stdio: ['ignore', 'inherit', 'inherit'], signal, killSignal: 'SIGKILL' })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`the measuring program ended with ${String(code)}`)
}

export const benchmarks: Benchmarks = { network }
