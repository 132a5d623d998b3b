// The errors of host commands, with every secret already removed.
import { BerthError, defineError } from '../errors/define.ts'

export type FailureReason = 'exit' | 'signal' | 'timeout' | 'output-too-large'

export interface HostCommandFailure {
  /** the command and its arguments, masked */
  readonly command: string
  readonly reason: FailureReason
  /** undefined when a signal ended it */
  readonly exitCode: number | undefined
  readonly signal: string | undefined
  /** the last 20 lines of standard error, masked */
  readonly stderr: string
}

/** A host command that failed. Callers that can parse the tool's own message look at `failure.stderr`. */
export class HostCommandFailed extends BerthError {
  readonly failure: HostCommandFailure

  constructor (failure: HostCommandFailure, how: string) {
    super('host_command_failed', 'internal', `${failure.command}: ${how}${failure.stderr === '' ? '' : `\n${failure.stderr}`}`)
    this.failure = failure
  }
}

/** Whether a command ran and ended by itself with this exit code. */
export function exitedWith (error: unknown, exitCode: number): error is HostCommandFailed {
  return error instanceof HostCommandFailed && error.failure.reason === 'exit' && error.failure.exitCode === exitCode
}

/** A host command that is not installed, with the Debian package that has it, when that is known; or one that this user may not execute. */
export const HostCommandMissing = defineError('host_command_missing', 'unavailable', (file: string, fromPackage?: string, { isForbidden = false } = {}) =>
  `the host has no command ${file}${isForbidden ? ' that this server may execute' : ''}${fromPackage === undefined ? '' : `; install the package ${fromPackage}`}`)
