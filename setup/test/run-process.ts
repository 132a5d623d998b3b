// Runs the process of test files to its end, and ends it when that does not come.
import { spawn, type ChildProcess } from 'node:child_process'
import { hasCode } from '../../core/errors/system-code.ts'
import { packageRoot } from '../../core/package-root.ts'
import type { Ending } from './count.ts'

/** Time in which a test must end what it started after it was asked to end. */
const GRACE_MS = 60_000

export interface ProcessOptions {
  /** A process that runs longer is asked to end. */
  readonly boundSeconds: number
  /** When it aborts, the process is asked to end. */
  readonly signal: AbortSignal
  readonly graceMs?: number
}

/** Compares every answer of a server in the file's own process with the API's document. */
const documentedErrors = new URL('../../test/helpers/documented-errors.js', import.meta.url).href

/**
 * Runs Node with these arguments. A process that does not end when asked is killed, with every process of its group.
 * @param wrap the command to run for a command
 */
export async function runProcess (args: readonly string[], { boundSeconds, signal, graceMs = GRACE_MS, wrap, onStdout, onStderr }: ProcessOptions & {
  readonly wrap: (command: readonly string[]) => readonly string[]
  readonly onStdout: (chunk: Buffer) => void
  readonly onStderr: (chunk: Buffer) => void
}): Promise<Ending> {
  const started = performance.now()
  // Without source maps: see places.ts.
  const [program = '', ...rest] = wrap([process.execPath, '--import', documentedErrors, ...args])
  const child = spawn(program, rest, {
    cwd: packageRoot,
    // A group of its own, so that only this process passes Ctrl-C on to it.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, TAP: '1', TAP_TIMEOUT: String(boundSeconds) }
  })
  let overran = false
  let force: NodeJS.Timeout | undefined
  const end = (): void => {
    child.kill('SIGTERM')
    force ??= setTimeout(() => killGroup(child), graceMs)
  }
  const late = setTimeout(() => {
    overran = true
    end()
  }, boundSeconds * 1000)
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  child.stdout.on('data', onStdout)
  child.stderr.on('data', onStderr)
  try {
    const ending = await ended(child)
    return { ...ending, ...overran ? { overranSeconds: boundSeconds } : {}, durationMs: performance.now() - started }
  } finally {
    clearTimeout(late)
    clearTimeout(force)
    signal.removeEventListener('abort', end)
  }
}

/** Waits for the process and for the ends of its pipes, which a process that it left behind may hold open for ever. */
async function ended (child: ChildProcess): Promise<{ exitCode: number | null, signal: string | null }> {
  return await new Promise((resolve, reject) => {
    let patience: NodeJS.Timeout | undefined
    child.once('error', reject)
    child.once('exit', () => {
      patience = setTimeout(() => {
        killGroup(child)
        child.stdout?.destroy()
        child.stderr?.destroy()
      }, 5000)
    })
    child.once('close', (exitCode, signal) => {
      clearTimeout(patience)
      resolve({ exitCode, signal })
    })
  })
}

function killGroup (child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error
  }
}
