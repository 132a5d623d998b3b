// Runs a command in a VM with the streams of this process.
import type { Api } from '../api/client.ts'
import { EXIT } from '../exit-codes.ts'
import { path } from '../api/path.ts'
import { Failure, wrongUsage } from '../failure.ts'
import type { Session } from '../session.ts'
import { openRaw } from '../terminal/raw.ts'
import { execute, type ExecOptions } from './program.ts'

/** The exit code of the command; 0 when the user leaves by Ctrl-P Ctrl-Q. */
export async function executeHere (session: Session, api: Api, options: ExecOptions): Promise<number> {
  const { stdin, stdout, stderr } = process
  if (options.tty && (!stdin.isTTY || !stdout.isTTY)) throw wrongUsage('-t needs a terminal on standard input and output')
  if (options.waitSeconds !== undefined) await runs(api, options.instance, options.waitSeconds)
  if (!options.tty) return await execute(api, options, { input: stdin, output: stdout, error: stderr }, session.interrupted)
  const terminal = openRaw(stdin)
  try {
    const left = new Promise<number>((resolve) => { terminal.left.addEventListener('abort', () => resolve(0), { once: true }) })
    const ended = AbortSignal.any([terminal.left, session.interrupted])
    const running = execute(api, options, { input: terminal.keys, output: stdout, error: stderr }, ended)
    running.catch(() => undefined)
    return await Promise.race([running, left])
  } finally {
    terminal.restore()
  }
}

/** Waits for an instance that is starting. */
async function runs (api: Api, instance: string, seconds: number): Promise<void> {
  const deadline = performance.now() + seconds * 1000
  while (true) {
    const left = Math.max(0, Math.ceil((deadline - performance.now()) / 1000))
    const { state, timed_out: isLate } = await api.call<{ readonly state: string, readonly timed_out: boolean }>('GET', path`/instances/${instance}/wait`, { query: { state: 'Running', timeout: `${Math.min(left, LONGEST_WAIT)}s` } })
    if (state === 'Running') return
    if (!isLate || performance.now() >= deadline) throw new Failure(`${instance} is ${state}, not Running`, { exitCode: EXIT.berthFailed })
  }
}

/** The limit of one call, given by the API. */
const LONGEST_WAIT = 300
