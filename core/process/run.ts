// Runs one host command to its end: no shell, a small environment, a deadline, and no secret in reports.
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { basename } from 'node:path'
import { hasCode } from '../errors/system-code.ts'
import type { HostCommands, RunOptions, RunResult } from '../contracts/services.ts'
import { traced } from '../tracing/span.ts'
import { programEnvironment } from './environment.ts'
import { HostCommandFailed, HostCommandMissing, type FailureReason } from './errors.ts'
import { maskSecrets } from './mask.ts'
import { packageOf, SHARED_PACKAGES, type HostPackage } from './packages.ts'
import { createTail, lastLines, type Tail } from './tail.ts'

// The default deadline of a command: longer than any command that ends takes, so that only one that hangs is killed.
const LONGEST_MS = 3_600_000
const MAX_STDOUT_BYTES = 64 * 2 ** 20
const MAX_STDERR_BYTES = 2 ** 20
const REPORTED_STDERR_LINES = 20
// A helper that outlives the command may keep its pipes open; then the end of the command itself counts.
const PIPE_GRACE_MS = 1000

interface Ending { readonly exitCode: number | null, readonly signal: string | null, readonly reason: FailureReason | 'aborted' }

export { HostCommandFailed, HostCommandMissing } from './errors.ts'

/**
 * The `commands` service. Every command has a deadline: its own, or `longestMs`.
 * @param options `packages`: the packages of plugins; the error of a missing command names its package
 */
export function createHostCommands ({ longestMs = LONGEST_MS, packages = [] }: { readonly longestMs?: number, readonly packages?: readonly HostPackage[] } = {}): HostCommands {
  const known = [...packages, ...SHARED_PACKAGES]
  // The span has no arguments: they may hold secrets.
  return {
    run: async (file, args, options) => await traced(`command ${basename(file)}`, {}, async () => await run(file, args, { ...options, timeoutMs: options?.timeoutMs ?? longestMs }, known))
  }
}

async function run (file: string, args: readonly string[], options: RunOptions, packages: readonly HostPackage[]): Promise<RunResult> {
  options.signal?.throwIfAborted()
  const child = spawn(file, [...args], {
    cwd: options.cwd,
    env: programEnvironment({ HOME: homeFolder(), ...options.env }),
    // its own process group, so that a kill also reaches the processes that it started
    detached: true,
    stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe']
  })
  const stdout = createTail(MAX_STDOUT_BYTES)
  const stderr = createTail(MAX_STDERR_BYTES)
  const ending = await watch(child, (cause) => HostCommandMissing.from(cause, file, packageOf(file, packages)?.name), options, stdout, stderr)
  if (ending.reason === 'aborted') throw abortReason(options.signal)
  if (ending.reason === 'exit' && ending.exitCode === 0) return { stdout: stdout.text(), stderr: stderr.text() }
  throw failed([file, ...args].join(' '), ending, stderr.text(), options)
}

function watch (child: ChildProcess, missing: (cause: unknown) => Error, options: RunOptions, stdout: Tail, stderr: Tail): Promise<Ending> {
  return new Promise((resolve, reject) => {
    let reason: Ending['reason'] = 'exit'
    let grace: NodeJS.Timeout | undefined
    const end = (why: Ending['reason']): void => {
      if (reason === 'exit') reason = why
      killGroup(child)
    }
    const abort = (): void => end('aborted')
    const timer = options.timeoutMs === undefined ? undefined : setTimeout(end, options.timeoutMs, 'timeout')
    options.signal?.addEventListener('abort', abort, { once: true })
    const cleanUp = (): void => {
      clearTimeout(timer)
      clearTimeout(grace)
      options.signal?.removeEventListener('abort', abort)
    }
    child.stdout?.on('data', (chunk: Buffer) => {
      stdout.push(chunk)
      if (stdout.overflowed) end('output-too-large')
    })
    child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk))
    child.once('error', (error: NodeJS.ErrnoException) => {
      cleanUp()
      reject(error.code === 'ENOENT' && folderExists(options.cwd) ? missing(error) : error)
    })
    child.once('exit', () => {
      clearTimeout(timer)
      grace = setTimeout(() => { child.stdout?.destroy(); child.stderr?.destroy() }, PIPE_GRACE_MS)
    })
    child.once('close', (exitCode, signal) => {
      cleanUp()
      resolve({ exitCode, signal, reason: reason === 'exit' && signal !== null ? 'signal' : reason })
    })
    feed(child, options.input)
  })
}

function feed (child: ChildProcess, input: string | Buffer | undefined): void {
  if (child.stdin === null) return
  // A command may end without reading all of its input: its exit code says whether that is a failure.
  child.stdin.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'ECONNRESET') child.emit('error', error)
  })
  child.stdin.end(input)
}

function killGroup (child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error
  }
}

function failed (command: string, ending: Ending, stderr: string, options: RunOptions): HostCommandFailed {
  const reason: FailureReason = ending.reason === 'aborted' ? 'signal' : ending.reason
  const how: Record<FailureReason, string> = {
    exit: `exited with ${String(ending.exitCode)}`,
    signal: `was killed by ${String(ending.signal)}`,
    timeout: `did not end within ${String(options.timeoutMs)} ms`,
    'output-too-large': `printed more than ${MAX_STDOUT_BYTES} bytes`
  }
  return new HostCommandFailed({
    command: maskSecrets(command, options.secrets),
    reason,
    exitCode: reason === 'exit' ? ending.exitCode ?? undefined : undefined,
    signal: ending.signal ?? undefined,
    stderr: maskSecrets(lastLines(stderr, REPORTED_STDERR_LINES), options.secrets)
  }, how[reason])
}

function abortReason (signal: AbortSignal | undefined): unknown {
  return signal?.reason ?? new DOMException('The command was aborted', 'AbortError')
}

function folderExists (folder: string | undefined): boolean {
  return folder === undefined || existsSync(folder)
}

// Not $HOME: the environment is the operator's shell, but the commands run as the server's user.
function homeFolder (): string {
  try {
    return userInfo().homedir
  } catch (error) {
    // a user without a passwd entry, as systemd's DynamicUser gives
    if (error instanceof Error && 'code' in error) return '/'
    throw error
  }
}
