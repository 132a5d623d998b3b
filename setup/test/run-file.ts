// Runs one test file as a process of its own and counts what it reports.
import { spawn } from 'node:child_process'
import { packageRoot } from '../../core/package-root.ts'
import { createCounter, type FileOutcome } from './count.ts'
import type { TestFile } from './files.ts'

const timeoutSeconds = 2700
/** What a test has started it ends within this time after it was asked to. */
const graceMs = 60_000

/** Runs the file to its end. When `signal` aborts, the file is asked to end, and after a while made to. */
export async function runFile (file: TestFile, signal: AbortSignal): Promise<FileOutcome> {
  const started = performance.now()
  const counter = createCounter(file.source)
  const child = spawn(process.execPath, ['--enable-source-maps', file.compiled], {
    cwd: packageRoot,
    // A group of its own, so that Ctrl-C comes to it once, from here.
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TAP: '1', TAP_TIMEOUT: String(timeoutSeconds) }
  })
  let force: NodeJS.Timeout | undefined
  const end = (): void => {
    child.kill('SIGTERM')
    force ??= setTimeout(() => child.kill('SIGKILL'), graceMs)
  }
  const late = setTimeout(end, (timeoutSeconds + 10) * 1000)
  signal.addEventListener('abort', end)
  child.stdout.on('data', (chunk: Buffer) => counter.parser.write(chunk))
  try {
    const ending = await new Promise<{ exitCode: number | null, signal: string | null }>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (exitCode, signalName) => resolve({ exitCode, signal: signalName }))
    })
    counter.parser.end()
    return counter.finish({ ...ending, durationMs: performance.now() - started })
  } finally {
    clearTimeout(late)
    clearTimeout(force)
    signal.removeEventListener('abort', end)
  }
}
