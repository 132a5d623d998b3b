// Runs one host command to its end: no shell, a small environment, a deadline, and no secret in reports.
import { accessSync, constants } from 'node:fs'
import { userInfo } from 'node:os'
import { basename, resolve as absolute } from 'node:path'
import { hasCode } from '../errors/system-code.ts'
import type { HostCommands, RunOptions, RunResult } from '../contracts/services.ts'
import { traced } from '../tracing/span.ts'
import { programEnvironment } from './environment.ts'
import { HostCommandFailed, HostCommandMissing, type FailureReason } from './errors.ts'
import { maskSecrets } from './mask.ts'
import { packageOf, SHARED_PACKAGES, type HostPackage } from './packages.ts'
import { startCommand } from './spawner/spawner.ts'
import { createTail, lastLines, type Tail } from './tail.ts'

// The default deadline of a command: longer than any command that ends takes, so that only one that hangs is killed.
const LONGEST_MS = 3_600_000
const MAX_STDOUT_BYTES = 64 * 2 ** 20
const MAX_STDERR_BYTES = 2 ** 20
const REPORTED_STDERR_LINES = 20

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
  const stdout = createTail(MAX_STDOUT_BYTES)
  const stderr = createTail(MAX_STDERR_BYTES)
  const ending = await watch(file, args, options, stdout, stderr).catch((error: unknown) => {
    if (!canEnter(options.cwd)) throw error
    if (hasCode(error, 'ENOENT')) throw HostCommandMissing.from(error, file, packageOf(file, packages)?.name)
    if (hasCode(error, 'EACCES')) throw HostCommandMissing.from(error, file, undefined, { isForbidden: true })
    throw error
  })
  if (ending.reason === 'aborted') throw abortReason(options.signal)
  if (ending.reason === 'exit' && ending.exitCode === 0) return { stdout: stdout.text(), stderr: stderr.text() }
  throw failed([file, ...args].join(' '), ending, stderr.text(), options)
}

function watch (file: string, args: readonly string[], options: RunOptions, stdout: Tail, stderr: Tail): Promise<Ending> {
  const { cwd = '.', env, input, signal, timeoutMs } = options
  return new Promise((resolve, reject) => {
    let reason: Ending['reason'] = 'exit'
    const end = (why: Ending['reason']): void => {
      if (reason === 'exit') reason = why
      started.kill()
    }
    const abort = (): void => end('aborted')
    const cleanUp = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
    const started = startCommand({ file, args, cwd: absolute(cwd), env: programEnvironment({ HOME: homeFolder(), ...env }), ...input === undefined ? {} : { input: Buffer.from(input) } }, {
      stdout (piece) {
        stdout.push(piece)
        if (stdout.overflowed) end('output-too-large')
      },
      stderr (piece) { stderr.push(piece) },
      ended (exitCode, killedBy) {
        cleanUp()
        // A deadline that passed while a helper kept the pipes of a command that had ended counts for nothing.
        const how = reason === 'timeout' && killedBy === null ? 'exit' : reason
        resolve({ exitCode, signal: killedBy, reason: how === 'exit' && killedBy !== null ? 'signal' : how })
      },
      failed (error) {
        cleanUp()
        reject(error)
      }
    })
    const timer = timeoutMs === undefined ? undefined : setTimeout(end, timeoutMs, 'timeout')
    signal?.addEventListener('abort', abort, { once: true })
  })
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

/** Whether the folder is not what a command failed by: the system's codes do not tell it from the command. */
function canEnter (folder: string | undefined): boolean {
  if (folder === undefined) return true
  try {
    accessSync(folder, constants.X_OK)
    return true
  } catch (error) {
    if (error instanceof Error) return false
    throw error
  }
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
