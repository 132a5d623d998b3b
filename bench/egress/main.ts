// `npm run bench -- egress`: the proxy against a direct connection, a bare forwarder, mockttp and mitmproxy, all to the same origin.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createHostCommands } from '../../core/process/run.ts'
import { inFolder } from '../folder.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'
import { installRivals } from './rivals.ts'
import { policyChanges } from './policy-changes.ts'

/** The parameters of `inside.ts`. */
export interface InsideOptions {
  readonly folder: string
  readonly runs: number
  /** how long memory is watched under load */
  readonly seconds: number
  /** folder of another commit's build, whose proxy is compared, too */
  readonly before?: string
  /** whether more than workers is measured, which needs the other forwarders */
  readonly hasRivals: boolean
}

async function egress ({ runs, seconds, before }: BenchOptions): Promise<void> {
  await inFolder(async (folder, signal) => {
    await installRivals(createHostCommands(), join(folder, 'mockttp'))
    await measureInside({ folder, runs, seconds, hasRivals: true, ...before === undefined ? {} : { before } }, signal)
  })
}

/** The part of the benchmark that compares the proxy with itself. */
async function egressWorkers ({ runs, seconds, before }: BenchOptions): Promise<void> {
  await inFolder(async (folder, signal) => { await measureInside({ folder, runs, seconds, hasRivals: false, ...before === undefined ? {} : { before } }, signal) })
}

async function measureInside (options: InsideOptions, signal: AbortSignal): Promise<void> {
  const program = fileURLToPath(new URL('inside.js', import.meta.url))
  // With a process namespace of its own, too: every process that it starts ends with it.
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', '--net', '--pid', '--fork', '--kill-child', '--mount-proc', process.execPath, program, JSON.stringify(options)], {
    stdio: ['ignore', 'inherit', 'inherit'], signal, killSignal: 'SIGKILL', env: { ...process.env, TMPDIR: options.folder }
  })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`the measuring program ended with ${String(code)}`)
}

export const benchmarks: Benchmarks = { egress, 'egress-workers': egressWorkers, 'egress-policies': async ({ runs, before }) => { await policyChanges(runs, before) } }
