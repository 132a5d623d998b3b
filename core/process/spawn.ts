// Starts a process that outlives this server, as the VMs do: in a session of its own, with no open file of this server but its log.
import { spawn, type ChildProcess } from 'node:child_process'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Duplex } from 'node:stream'
import type { ProcessIdentity } from '../contracts/services.ts'
import { programEnvironment } from './environment.ts'
import { readIdentity } from './identity.ts'
import { wordsAfter } from './log-file.ts'

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
  /** Opens further descriptors for it. Called last, so that they are handed over in the same turn of the event loop. */
  readonly openExtra?: () => Promise<Extra>
}

export interface Extra {
  /** numbered from `FIRST_EXTRA` on: descriptors of this process; `pipe` makes a socket to it */
  readonly descriptors: readonly (number | 'pipe')[]
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
  /** the other end of the first extra descriptor when that is a pipe */
  readonly stream: Duplex | undefined
}

export async function spawnBackground ({ file, args, folder, environment, log, openExtra }: BackgroundCommand): Promise<Background> {
  const output = await open(log, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  try {
    const start = (await output.stat()).size
    const extra = await openExtra?.()
    let child: ChildProcess
    try {
      child = spawn(file, args, { cwd: folder, env: programEnvironment(environment), detached: true, stdio: ['ignore', output.fd, output.fd, ...extra?.descriptors ?? []] })
    } finally {
      extra?.close?.()
    }
    child.unref()
    let end: string | undefined
    const ended = new Promise<string>((resolve) => {
      const settle = (how: string): void => {
        end = how
        resolve(how)
      }
      child.once('error', (error) => { settle(error.message) })
      child.once('exit', (code, signal) => { settle(signal ?? `exit code ${code}`) })
    })
    const stream = child.stdio[FIRST_EXTRA]
    // The user of the stream handles its errors; until then the end of the process is reported anyway.
    stream?.on('error', () => {})
    return {
      identity: child.pid === undefined ? undefined : readIdentity(child.pid),
      ended,
      end: () => end,
      lastWords: async () => await wordsAfter(log, start),
      stream: isDuplex(stream) ? stream : undefined
    }
  } finally {
    await output.close()
  }
}

function isDuplex (stream: unknown): stream is Duplex {
  return typeof stream === 'object' && stream !== null && 'write' in stream && 'read' in stream
}
