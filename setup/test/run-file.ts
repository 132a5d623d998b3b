// Runs one test file as a process of its own and counts what it reports.
import { spawn, type ChildProcess } from 'node:child_process'
import { hasCode } from '../../core/errors/system-code.ts'
import { packageRoot } from '../../core/package-root.ts'
import { BoundedText } from './bounded-text.ts'
import { createCounter, type FileOutcome } from './count.ts'
import type { TestFile } from './files.ts'
import { startMeter } from './processor-time.ts'

/** Time in which a test must end what it started after it was asked to end. */
const GRACE_MS = 60_000
/** the part of a file's other output that is kept; shown when it fails */
const KEPT_BYTES = 64 * 1024

export interface RunOptions {
  /** A file that runs longer is asked to end, and fails. */
  readonly boundSeconds: number
  /** When it aborts, the file is asked to end. */
  readonly signal: AbortSignal
  readonly graceMs?: number
  /** whether the processor time is wanted */
  readonly times?: boolean
}

/** Compares every answer of a server in the file's own process with the API's document. */
const documentedErrors = new URL('../../test/helpers/documented-errors.js', import.meta.url).href

let runs = 0

/** Runs the file to its end. A file that does not end when asked is killed, with every process of its group. */
export async function runFile (file: TestFile, { boundSeconds, signal, graceMs = GRACE_MS, times = false }: RunOptions): Promise<FileOutcome> {
  const started = performance.now()
  const counter = createCounter(file.source)
  const said = new BoundedText(KEPT_BYTES)
  const meter = times ? await startMeter(`berth-test-${process.pid}-${++runs}`) : undefined
  // Without source maps: see places.ts.
  const command = [process.execPath, '--import', documentedErrors, file.compiled]
  const [program = '', ...args] = meter?.wrap(command) ?? command
  const child = spawn(program, args, {
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
  child.stdout.on('data', (chunk: Buffer) => counter.parser.write(chunk))
  child.stderr.on('data', (chunk: Buffer) => said.add(chunk))
  try {
    const ending = await ended(child)
    counter.parser.end()
    const outcome = counter.finish({ ...ending, ...overran ? { overranSeconds: boundSeconds } : {}, durationMs: performance.now() - started, said: said.toString() })
    return { ...outcome, ...meter === undefined ? {} : { processorSeconds: await meter.end() } }
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
