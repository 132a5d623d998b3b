// Starts a process that outlives this server, as the VMs do: in a session of its own, with no open file of this server but its log.
import { spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ProcessIdentity } from '../contracts/services.ts'
import { deferred } from '../jobs/deferred.ts'
import { programEnvironment } from './environment.ts'
import { isAlive, readIdentity } from './identity.ts'
import { wordsAfter } from './log-file.ts'
import { startCommand } from './spawner/spawner.ts'

/** number of the first extra descriptor in the process */
export const FIRST_EXTRA = 3

export interface BackgroundCommand {
  readonly file: string
  readonly args: readonly string[]
  /** its working folder */
  readonly folder: string
  /** variables of its own */
  readonly environment?: Readonly<Record<string, string>>
  /** The file that its output is appended to, created for this user alone if it does not exist; a link is not followed. */
  readonly log: string
  /** at most 8 files that it finds open for reading, from `FIRST_EXTRA` on */
  readonly files?: readonly string[]
  /** Opens further descriptors for it, from `FIRST_EXTRA` on, which only this process can hand over. Called last, so that they are handed over in the same turn of the event loop. */
  readonly openExtra?: () => Promise<Extra>
}

export interface Extra {
  readonly descriptors: readonly number[]
  /** Closes them in this process; called as soon as the child has them, or could not be started. */
  close? (): void
}

export interface Background {
  /** undefined when it has already ended, or was never started */
  readonly identity: ProcessIdentity | undefined
  /** Resolves with how it ended: a signal's name, `exit code 1`, or why it could not be started. */
  readonly ended: Promise<string>
  /** how it ended; undefined while it runs */
  end (): string | undefined
  /** What it has printed since its start, at most a few lines. */
  lastWords (): Promise<string>
}

/** A process that was started, or not. */
interface Begun {
  /** undefined when it could not be started */
  readonly identity: ProcessIdentity | undefined
  readonly ended: Promise<string>
}

/** How often a process is looked at whose end nobody tells this one: its parent has ended. */
const LOOK_MS = 1000

export async function spawnBackground ({ log, ...command }: BackgroundCommand): Promise<Background> {
  const output = await open(log, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  try {
    const start = (await output.stat()).size
    const { identity, ended } = command.openExtra === undefined ? await throughSpawner(command, log) : await directly(command, output.fd, await command.openExtra())
    let end: string | undefined
    return {
      identity,
      ended: ended.then((how) => {
        end = how
        return how
      }),
      end: () => end,
      lastWords: async () => await wordsAfter(log, start)
    }
  } finally {
    await output.close()
  }
}

async function throughSpawner ({ file, args, folder, environment, files = [] }: Omit<BackgroundCommand, 'log'>, log: string): Promise<Begun> {
  const { promise: begun, resolve: begin } = deferred<ProcessIdentity | undefined>()
  const { promise: ended, resolve: end } = deferred<string>()
  let identity: ProcessIdentity | undefined
  startCommand({ file, args, cwd: folder, env: programEnvironment(environment), log, files }, {
    started (started) {
      identity = readIdentity(started)
      begin(identity)
      return identity !== undefined
    },
    ended (exitCode, signal) { end(signal ?? `exit code ${exitCode}`) },
    failed (error) {
      // The process that would tell its end has ended.
      end(identity === undefined ? error.message : untilGone(identity))
      begin(undefined)
    }
  })
  return { identity: await begun, ended }
}

async function untilGone (identity: ProcessIdentity): Promise<string> {
  while (isAlive(identity)) await sleep(LOOK_MS, undefined, { ref: false })
  return 'its exit code is not known'
}

async function directly ({ file, args, folder, environment }: Omit<BackgroundCommand, 'log'>, output: number, extra: Extra): Promise<Begun> {
  try {
    const child = spawn(file, args, { cwd: folder, env: programEnvironment(environment), detached: true, stdio: ['ignore', output, output, ...extra.descriptors] })
    child.unref()
    return {
      identity: child.pid === undefined ? undefined : readIdentity(child.pid),
      ended: new Promise<string>((resolve) => {
        child.once('error', (error) => { resolve(error.message) })
        child.once('exit', (code, signal) => { resolve(signal ?? `exit code ${code}`) })
      })
    }
  } finally {
    extra.close?.()
  }
}
