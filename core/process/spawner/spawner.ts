// The one berth-spawner of this process (main.c), started with the first command. It starts commands without stopping this process for as long as a copy of its page tables takes.
import { AsyncLocalStorage } from 'node:async_hooks'
import { spawn } from 'node:child_process'
import { Socket } from 'node:net'
import { constants } from 'node:os'
import { join } from 'node:path'
import { getSystemErrorName } from 'node:util'
import type { ProcessIdentity } from '../../contracts/services.ts'
import { packageRoot } from '../../package-root.ts'
import { readIdentity } from '../identity.ts'
import { ENDED, FAILED, frameReader, killFrame, numberIn, STARTED, startFrame, STDERR, STDOUT, type Frame, type Start } from './frames.ts'

export const SPAWNER_PROGRAM = join(packageRoot, 'dist/core/process/berth-spawner')
const MAX_ID = 2 ** 32 - 1
const SIGNALS = new Map<number, string>(Object.entries(constants.signals).map(([name, number]) => [number, name]))
/** What the spawner's pipes cause belongs to no request: it is not to be found in the context of the one that came first. */
const outside = AsyncLocalStorage.snapshot()

/** Told of a command. After `ended` or `failed` there is nothing more. */
export interface Watcher {
  stdout? (piece: Buffer): void
  stderr? (piece: Buffer): void
  /** Only of a process in the background, which has a log in place of the two above. Gives whether it runs: this process waits for the end of one that is over already, and that comes next. */
  started? (pid: number): boolean
  /** One of the two is not null. */
  ended (exitCode: number | null, signal: string | null): void
  /** It was not started (`code` is the system's), or the spawner has ended, and with it all but what is in the background. */
  failed (error: Error): void
}

export interface Started {
  /** Kills the command with all processes of its group. Does nothing when it has ended. */
  kill (): void
}

interface Watched extends Watcher {
  readonly file: string
  /** Whether this process waits for the next frame about it before it ends by itself: of a process in the background that runs only for the first one. */
  isAwaited: boolean
}

interface Spawner {
  readonly identity: ProcessIdentity | undefined
  readonly input: Socket
  readonly output: Socket
  readonly watchers: Map<number, Watched>
  /** how many of them this process waits for */
  awaited: number
}

let current: Spawner | undefined
let lastId = 0

/** The spawner's process while it runs. */
export function spawnerIdentity (): ProcessIdentity | undefined {
  return current?.identity
}

/**
 * Starts a command in a session of its own. It ends with this process; one with a log outlives it.
 * @throws TypeError for a text with a NUL
 */
export function startCommand (start: Start, watcher: Watcher): Started {
  const id = lastId = lastId === MAX_ID ? 1 : lastId + 1
  const frame = startFrame(id, start)
  const spawner = current ??= outside(startSpawner)
  const { watchers, input } = spawner
  watchers.set(id, { ...watcher, file: start.file, isAwaited: true })
  if (++spawner.awaited === 1) spawner.output.ref()
  input.write(frame)
  return { kill: () => { if (watchers.has(id) && current === spawner) input.write(killFrame(id)) } }
}

function startSpawner (): Spawner {
  // No folder of its own that it would keep from being removed, and in no group that a terminal signals.
  const child = spawn(SPAWNER_PROGRAM, [], { cwd: '/', env: {}, detached: true, stdio: ['pipe', 'pipe', 'ignore'] })
  const { stdin: input, stdout: output, pid } = child
  if (!(input instanceof Socket) || !(output instanceof Socket)) throw new Error(`${SPAWNER_PROGRAM} could not be started`)
  const watchers = new Map<number, Watched>()
  const spawner: Spawner = { identity: pid === undefined ? undefined : readIdentity(pid), input, output, watchers, awaited: 0 }
  const over = (how: string): void => {
    if (current === spawner) current = undefined
    const lost = [...watchers.values()]
    watchers.clear()
    for (const watcher of lost) watcher.failed(new Error(`${SPAWNER_PROGRAM}, which starts the host's commands, ${how}`))
  }
  child.once('error', (error) => { over(`could not be started: ${error.message}`) })
  // After the last frame, unlike the end of the process.
  child.once('close', (code, signal) => { over(`has ended (${signal ?? `exit code ${code}`})`) })
  // Its end is told above.
  input.on('error', () => {})
  output.on('error', () => {})
  output.on('data', frameReader((frame) => { dispatch(spawner, frame) }))
  child.unref()
  input.unref()
  output.unref()
  return spawner
}

function dispatch (spawner: Spawner, { command, type, payload }: Frame): void {
  const watcher = spawner.watchers.get(command)
  if (watcher === undefined) return
  if (type === STDOUT) watcher.stdout?.(payload)
  if (type === STDERR) watcher.stderr?.(payload)
  if (type === STARTED && watcher.started?.(numberIn(payload)) === true) awaitNoMore(spawner, watcher)
  if (type !== ENDED && type !== FAILED) return
  spawner.watchers.delete(command)
  awaitNoMore(spawner, watcher)
  const number = numberIn(payload)
  if (type === FAILED) watcher.failed(startError(watcher.file, number))
  // The status of waitpid(2): a signal's number in the lowest seven bits, else the exit code in the second byte.
  else if ((number & 0x7f) === 0) watcher.ended(number >> 8 & 0xff, null)
  else watcher.ended(null, SIGNALS.get(number & 0x7f) ?? `signal ${number & 0x7f}`)
}

function awaitNoMore (spawner: Spawner, watcher: Watched): void {
  if (!watcher.isAwaited) return
  watcher.isAwaited = false
  if (--spawner.awaited === 0) spawner.output.unref()
}

/** As Node's own error of a program that does not start. */
function startError (file: string, errno: number): Error {
  const code = getSystemErrorName(-errno)
  return Object.assign(new Error(`spawn ${file} ${code}`), { code, errno: -errno, syscall: `spawn ${file}`, path: file })
}
