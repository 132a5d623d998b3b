// Starts a process that outlives this server, as the VMs do: in a session of its own, with nothing of this server's open but its log.
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
  /** Its output is added to it. It is made when it is not there, for this user alone; a link is not followed. */
  readonly log: string
  /** Opens what it has beside that. Asked last, so that what is opened is handed over in the same turn of the event loop. */
  readonly openExtra?: () => Promise<Extra>
}

export interface Extra {
  /** from `FIRST_EXTRA` on: descriptors of this process, or a socket to it */
  readonly descriptors: readonly (number | 'pipe')[]
  /** Closes them here; called as soon as the process has them, or cannot have them. */
  close? (): void
}

export interface Background {
  /** undefined when it has ended already, or never began */
  readonly identity: ProcessIdentity | undefined
  /** Resolves with how it ended: a signal's name, `exit code 1`, or why it could not be started. */
  readonly ended: Promise<string>
  /** how it ended; undefined while it runs */
  end (): string | undefined
  /** What it printed since its start, at most a few lines. */
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
    // Whoever uses it hears of its failures; before that, the end of the process tells.
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
