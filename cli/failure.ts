// The failure of a command: one line for people, with what to do next, and an exit code.
import { EXIT } from './exit-codes.ts'
import { clean } from '../core/clean-text.ts'

export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: number
  /** what to do next */
  readonly hint: string | undefined

  constructor (message: string, options: { readonly exitCode?: number, readonly hint?: string | undefined, readonly cause?: unknown } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.exitCode = options.exitCode ?? EXIT.failed
    this.hint = options.hint
  }
}

/** The command line is wrong. */
export function wrongUsage (message: string, hint?: string): Failure {
  return new Failure(message, { exitCode: EXIT.usage, hint })
}

/** Ctrl-C, or SIGTERM. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
}

/** Standard output or standard error takes no more. When its reader has closed the pipe, as `head` does, the command is done. */
export class OutputLost extends Error {
  override readonly name = 'OutputLost'
  readonly exitCode: number

  constructor (cause: NodeJS.ErrnoException) {
    super(cause.message, { cause })
    this.exitCode = cause.code === 'EPIPE' ? EXIT.done : EXIT.failed
  }
}

/** `berth: what happened; what to do next` */
export function failureLine ({ message, hint }: Failure): string {
  return clean(`berth: ${message}${hint === undefined ? '' : `; ${hint}`}`)
}
