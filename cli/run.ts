// Runs one command line and returns its exit code.
import { CommanderError } from 'commander'
import { processEnvironment } from './environment.ts'
import { EXIT } from './exit-codes.ts'
import { Failure, failureLine, Interrupted, OutputLost } from './failure.ts'
import type { Input } from './input.ts'
import { createProgram } from './program.ts'
import type { CommandSpec } from './spec.ts'

export async function runClient (args: readonly string[]): Promise<number> {
  const outputLost = lossOfOutput()
  const flushed = async (code: number): Promise<number> => {
    await writtenOut()
    return outputLost.reason instanceof OutputLost ? outputLost.reason.exitCode : code
  }
  let code: number = EXIT.done
  let called: CommandSpec | undefined
  const program = createProgram(async (spec, input) => {
    called = spec
    code = await runCommand(spec, input, outputLost)
  })
  try {
    await program.parseAsync([...args], { from: 'user' })
    return await flushed(code)
  } catch (error) {
    if (error instanceof CommanderError) return await flushed(error.exitCode === 0 ? EXIT.done : EXIT.usage)
    return await flushed(explain(error, called))
  }
}

async function runCommand (spec: CommandSpec, input: Input, outputLost: AbortSignal): Promise<number> {
  // Loaded here, so that the help does not load it.
  const { createSession } = await import('./session.ts')
  const session = createSession(input, processEnvironment(), outputLost)
  try {
    const { run } = await spec.load()
    // Ctrl-C may have come while the command was loaded; then the command must not begin.
    session.interrupted.throwIfAborted()
    const running = run(session, input)
    return await Promise.race([running, ended(session.interrupted)]).catch(async (error: unknown) => {
      if (!session.interrupted.aborted) throw error
      // A command undoes things on Ctrl-C in its own `finally`; it is given a moment for that.
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

/** Prints one line on standard error, and returns the exit code. Only a fault of this program is printed with its stack. */
function explain (error: unknown, spec: CommandSpec | undefined): number {
  if (error instanceof Interrupted) return EXIT.interrupted
  if (error instanceof OutputLost) return error.exitCode
  if (error instanceof Failure) {
    process.stderr.write(`${failureLine(error)}\n`)
    // The exit code of the program in the VM must be distinguishable from a failure of Berth.
    return spec?.passThrough === true && spec.name !== 'create' && error.exitCode !== EXIT.usage && error.exitCode !== EXIT.timeout ? EXIT.berthFailed : error.exitCode
  }
  process.stderr.write(`berth: ${error instanceof Error ? error.stack ?? error.message : String(error)}\n`)
  return spec?.passThrough === true ? EXIT.berthFailed : EXIT.failed
}

/** Aborts with an `OutputLost` at the first error. More may follow, of what the command still writes while it undoes things. */
function lossOfOutput (): AbortSignal {
  const lost = new AbortController()
  for (const stream of [process.stdout, process.stderr]) stream.on('error', (error) => { lost.abort(new OutputLost(error)) })
  return lost.signal
}

/** Waits until everything that was written to a pipe has arrived there. */
async function writtenOut (): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) await new Promise<void>((resolve) => { stream.write('', () => resolve()) })
}
