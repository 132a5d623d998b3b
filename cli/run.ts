// One command line from its words to its exit code.
import { CommanderError } from 'commander'
import { processEnvironment } from './environment.ts'
import { EXIT } from './exit-codes.ts'
import { Failure, failureLine, Interrupted } from './failure.ts'
import type { Input } from './input.ts'
import { createProgram } from './program.ts'
import type { CommandSpec } from './spec.ts'

export async function runClient (args: readonly string[]): Promise<number> {
  endOnBrokenPipe()
  let code: number = EXIT.done
  let called: CommandSpec | undefined
  const program = createProgram(async (spec, input) => {
    called = spec
    code = await runCommand(spec, input)
  })
  try {
    await program.parseAsync([...args], { from: 'user' })
    return await flushed(code)
  } catch (error) {
    if (error instanceof CommanderError) return await flushed(error.exitCode === 0 ? EXIT.done : EXIT.usage)
    return await flushed(explain(error, called))
  }
}

async function runCommand (spec: CommandSpec, input: Input): Promise<number> {
  // Not loaded for a help.
  const { createSession } = await import('./session.ts')
  const session = createSession(input, processEnvironment())
  try {
    const { run } = await spec.load()
    // It may have come while the command was loaded, which has not begun then.
    session.interrupted.throwIfAborted()
    const running = run(session, input)
    return await Promise.race([running, ended(session.interrupted)]).catch(async (error: unknown) => {
      if (!session.interrupted.aborted) throw error
      // What a command takes back on Ctrl-C, it takes back in its own `finally`, for which it is given a moment.
      await Promise.race([running.catch(() => undefined), new Promise((resolve) => { setTimeout(resolve, UNDO_MS).unref() })])
      throw session.interrupted.reason
    })
  } finally {
    session.progress.end()
  }
}

const UNDO_MS = 10_000

async function ended (interrupted: AbortSignal): Promise<never> {
  return await new Promise((_resolve, reject) => {
    interrupted.addEventListener('abort', () => reject(interrupted.reason), { once: true })
  })
}

/** One line on standard error, and the exit code. Only a fault of this program shows where it happened. */
function explain (error: unknown, spec: CommandSpec | undefined): number {
  if (error instanceof Interrupted) return EXIT.interrupted
  if (error instanceof Failure) {
    process.stderr.write(`${failureLine(error)}\n`)
    // What the program in the VM ends with must be told from what Berth could not do.
    return spec?.passThrough === true && spec.name !== 'create' && error.exitCode !== EXIT.usage && error.exitCode !== EXIT.timeout ? EXIT.berthFailed : error.exitCode
  }
  process.stderr.write(`berth: ${error instanceof Error ? error.stack ?? error.message : String(error)}\n`)
  return spec?.passThrough === true ? EXIT.berthFailed : EXIT.failed
}

/** A reader that has seen enough, as `head`, ends this program without a word. */
function endOnBrokenPipe (): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? EXIT.done : EXIT.failed))
  }
}

/** What was written to a pipe has arrived there before the process ends. */
async function flushed (code: number): Promise<number> {
  for (const stream of [process.stdout, process.stderr]) await new Promise<void>((resolve) => { stream.write('', () => resolve()) })
  return code
}
