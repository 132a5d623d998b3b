// The interface of a command of the command line, and what it may use of the process.
import type { Environment } from '../config/environment.ts'

export interface CliContext {
  readonly environment: Environment
  /** one line to standard output */
  print (line: string): void
  /** one line to standard error */
  complain (line: string): void
}

export interface Command {
  /** Runs to the end and returns the exit code. */
  run (args: readonly string[], context: CliContext): Promise<number>
}

/** The command line is wrong: exit code 2, with the usage. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
