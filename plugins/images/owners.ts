// Runs the commands that change files' owners to the users of an image. Root may do that; another user may do it in a user namespace, for the users that it maps.
import type { HostCommands, RunOptions, RunResult } from '../../core/contracts/services.ts'
import { HostCommandFailed, HostCommandMissing } from '../../core/process/errors.ts'
import { PullFailure } from './failures.ts'

// exit code of unshare for a missing command
const NOT_FOUND = 127
const OWN_USER = ['unshare', '--user', '--map-root-user', '--']
// Maps this user to root, and its range in /etc/subuid and /etc/subgid to all other users.
const OWN_RANGE = ['unshare', '--user', '--map-root-user', '--map-auto', '--']
// umoci's error when the namespace does not map the user.
const NOT_MAPPED = /chown [^\n]*: invalid argument/

export class FileOwners {
  readonly #commands: HostCommands
  readonly #isRoot: boolean
  #enter: readonly string[] = []

  constructor (commands: HostCommands, isRoot = process.getuid?.() === 0) {
    this.#commands = commands
    this.#isRoot = isRoot
  }

  /** Finds out what this process may do. Resolves to the reason when it may do nothing. */
  async open (): Promise<string | undefined> {
    if (this.#isRoot) return undefined
    const refusals: string[] = []
    for (const enter of [OWN_RANGE, OWN_USER]) {
      const refusal = await this.#tried(enter)
      if (refusal === undefined) {
        this.#enter = enter
        return undefined
      }
      refusals.push(refusal)
    }
    return `unpacking images with the owners of their files needs root, or user namespaces (${refusals.at(-1) ?? ''})`
  }

  /** Whether files of every user can be unpacked; otherwise only images whose files all belong to root can be. */
  get mapsAll (): boolean {
    return this.#enter !== OWN_USER
  }

  /** Runs a command that makes, reads or removes files of an image's users. */
  async run (file: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
    const [program = file, ...rest] = [...this.#enter, file, ...args]
    try {
      return await this.#commands.run(program, rest, options)
    } catch (error) {
      if (this.#enter.length === 0 || !(error instanceof HostCommandFailed)) throw error
      if (error.failure.exitCode === NOT_FOUND) throw HostCommandMissing.from(error, file)
      if (NOT_MAPPED.test(error.failure.stderr)) throw new PullFailure('unsupported', unmapped(this.mapsAll), error)
      throw error
    }
  }

  async #tried (enter: readonly string[]): Promise<string | undefined> {
    const [program = '', ...args] = [...enter, 'true']
    try {
      await this.#commands.run(program, args, { timeoutMs: 10_000 })
      return undefined
    } catch (error) {
      if (error instanceof HostCommandFailed) return error.failure.stderr.split('\n').at(-1) ?? ''
      if (HostCommandMissing.is(error)) return error.message
      throw error
    }
  }
}

function unmapped (hasRange: boolean): string {
  return hasRange
    ? 'the image has files of a user beyond the range that /etc/subuid and /etc/subgid give to this server\'s user, which is not root'
    : 'the image has files of other users than root; this server is not root, and to unpack them needs newuidmap (package uidmap) and a range for its user in /etc/subuid and /etc/subgid'
}
