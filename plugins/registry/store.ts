// Runs Debian's docker-registry as the store behind /v2: a child on a private unix socket, restarted when it dies, never outliving the server.
import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { constants, type Dirent } from 'node:fs'
import { chmod, mkdir, open, readdir, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { get, IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { hasCode } from '../../core/errors/system-code.ts'
import type { HostCommands, Logger, ProcessIdentity } from '../../core/contracts/services.ts'
import { writeFileDurably } from '../../core/fs/durable.ts'
import { readIfThere } from '../../core/fs/read-if-there.ts'
import { withSignals } from '../../core/jobs/deadline.ts'
import { pause } from '../../core/jobs/pause.ts'
import { endProcess } from '../../core/process/end.ts'
import { programEnvironment } from '../../core/process/environment.ts'
import { isAlive, readIdentity } from '../../core/process/identity.ts'
import type { ProcessRegister } from '../../core/process/register.ts'
import { supervise } from '../../core/process/supervise.ts'
import { createTail, lastLines } from '../../core/process/tail.ts'
import { checkTool } from '../../core/process/tool-version.ts'
import { takesConnections } from '../../core/process/unix-socket.ts'
import { untilAnswering } from '../../core/process/until-answering.ts'
import { manifest } from './manifest.ts'
import { storeConfig } from './store-config.ts'

export interface StoreOptions {
  /** `<data>/registry` */
  readonly folder: string
  readonly log: Logger
  readonly commands: HostCommands
  readonly processes: ProcessRegister
  /** how to check whether a running store answers; each value has a default */
  readonly probe?: { readonly intervalMs?: number, readonly timeoutMs?: number }
}

const SOCKET = 'registry.sock'
const CONFIG = 'config.yml'
const IDENTITY = 'process.json'
/** where docker-registry has the folders of repositories, and in each of them those of its uploads */
const REPOSITORIES = 'docker/registry/v2/repositories'
const UPLOADS = '_uploads'
const READY_TIMEOUT_MS = 15_000
const STOP_TIMEOUT_MS = 5000
// A store that misses this many checks in a row hangs: it is ended and restarted.
const PROBE_INTERVAL_MS = 10_000
const PROBE_TIMEOUT_MS = 10_000
const MISSED_PROBES = 3
const SAID_BYTES = 8192
const SAID_LINES = 10

const Identity = Type.Object({ pid: Type.Integer(), startTicks: Type.String(), bootId: Type.String() })

export class Store {
  readonly #options: StoreOptions
  readonly #runFolder: string
  readonly #repositories: string
  readonly #stopping = new AbortController()
  readonly #words = createTail(SAID_BYTES)
  #child: ChildProcess | undefined
  #identity: ProcessIdentity | undefined
  #folderHandle: FileHandle | undefined
  #isUp = false
  #supervision: Promise<void> | undefined

  constructor (options: StoreOptions) {
    this.#options = options
    this.#runFolder = join(options.folder, 'run')
    this.#repositories = join(options.folder, 'store', REPOSITORIES)
  }

  /** The store's socket, by a path that is short however deep the data folder is; undefined while it is down. */
  socketPath (): string | undefined {
    return this.#isUp && this.#folderHandle !== undefined ? `/proc/self/fd/${this.#folderHandle.fd}/${SOCKET}` : undefined
  }

  /** Process id of the store; undefined while it is down. */
  get pid (): number | undefined {
    return this.#child?.pid
  }

  /** The last lines that the store printed. */
  said (): string {
    return lastLines(this.#words.text(), SAID_LINES)
  }

  /** Removes the data of an upload. The store then no longer finds it. */
  async dropUpload (repository: string, id: string): Promise<void> {
    await rm(join(this.#repositories, ...repository.split('/'), UPLOADS, id), { recursive: true, force: true })
  }

  /** An upload of an earlier server cannot be continued: its state is signed with a secret that changes at each start. */
  async #dropUploads (folder: string): Promise<void> {
    for (const entry of await readdirIfThere(folder)) {
      const path = join(folder, entry.name)
      if (entry.name === UPLOADS) await rm(path, { recursive: true, force: true })
      // No repository's name begins with an underscore: such folders are the store's own.
      else if (entry.isDirectory() && !entry.name.startsWith('_')) await this.#dropUploads(path)
    }
  }

  /** Resolves when the store answers. */
  async start (signal: AbortSignal): Promise<void> {
    const { folder, commands, log, processes } = this.#options
    // also gives the clearest error about a missing package
    await checkTool('docker-registry', { commands, log, packages: manifest.hostPackages, signal })
    for (const path of [folder, this.#runFolder, join(folder, 'store')]) {
      await mkdir(path, { recursive: true })
      await chmod(path, 0o700)
    }
    this.#folderHandle = await open(this.#runFolder, constants.O_RDONLY | constants.O_DIRECTORY)
    await this.#endOrphan()
    await this.#dropUploads(this.#repositories)
    await writeFileDurably(join(this.#runFolder, CONFIG), storeConfig({
      storeFolder: join(folder, 'store'), socket: SOCKET, secret: randomBytes(24).toString('hex')
    }), 0o600)
    await withSignals([signal, this.#stopping.signal], async (either) => { await this.#launch(either) })
    this.#supervision = supervise({
      name: 'the registry store',
      log,
      tracking: { processes, plugin: manifest.id, name: 'registry store', identity: () => this.#identity },
      untilWrong: async (signal) => await this.#untilWrong(signal),
      start: async (signal) => {
        // A store that has not answered in time may still run.
        await this.#end()
        await this.#launch(signal)
      },
      said: () => this.said()
    }, this.#stopping.signal)
  }

  /** Ends the store. Idempotent. */
  async stop (): Promise<void> {
    this.#stopping.abort()
    await this.#supervision
    await this.#end()
    await this.#folderHandle?.close()
    this.#folderHandle = undefined
  }

  async #untilWrong (signal: AbortSignal): Promise<string | undefined> {
    const child = this.#child
    const ended = new AbortController()
    const watching = withSignals([signal, ended.signal], async (either) => { await this.#watch(child, either) })
    await exited(child, signal)
    ended.abort()
    await watching
    if (signal.aborted) return undefined
    this.#isUp = false
    return `has ended (${child?.signalCode ?? `exit code ${child?.exitCode ?? ''}`})`
  }

  /** Ends the store when it runs and does not answer. */
  async #watch (child: ChildProcess | undefined, signal: AbortSignal): Promise<void> {
    const { intervalMs = PROBE_INTERVAL_MS, timeoutMs = PROBE_TIMEOUT_MS } = this.#options.probe ?? {}
    for (let missed = 0; missed < MISSED_PROBES;) {
      await pause(intervalMs, signal)
      const path = this.socketPath()
      if (signal.aborted || path === undefined) return
      missed = await answers(path, timeoutMs) ? 0 : missed + 1
    }
    if (signal.aborted) return
    this.#isUp = false
    this.#options.log.error({ pid: child?.pid, said: this.said() }, 'the registry store does not answer; it is ended')
    child?.kill('SIGKILL')
  }

  async #launch (signal: AbortSignal): Promise<void> {
    const isRoot = process.getuid?.() === 0
    // setpriv: the kernel ends the store when this server dies, even by SIGKILL, and the store keeps of root's privileges only the access to files
    const child = spawn('setpriv', [
      '--pdeathsig', 'KILL', '--no-new-privs', ...isRoot ? ['--bounding-set=-all'] : [], 'docker-registry', 'serve', CONFIG
    ], { cwd: this.#runFolder, env: programEnvironment({ HOME: this.#runFolder }), stdio: ['ignore', 'ignore', 'pipe'] })
    this.#child = child
    child.on('error', (error) => this.#options.log.error({ err: error }, 'the registry store could not be run'))
    child.stderr?.on('data', (chunk: Buffer) => this.#words.push(chunk))
    if (child.stderr !== null) createInterface({ input: child.stderr }).on('line', (line) => this.#options.log.debug({ line }, 'registry store'))
    this.#identity = child.pid === undefined ? undefined : readIdentity(child.pid)
    if (this.#identity !== undefined) await writeFileDurably(join(this.#runFolder, IDENTITY), JSON.stringify(this.#identity), 0o600)
    await this.#awaitAnswer(child, signal)
    this.#isUp = true
  }

  // docker-registry does not report when it is ready: connecting is the only way to know.
  async #awaitAnswer (child: ChildProcess, signal: AbortSignal): Promise<void> {
    const outcome = await untilAnswering({
      answers: async () => await takesConnections(this.#runFolder, SOCKET), isThere: () => isRunning(child), withinMs: READY_TIMEOUT_MS, signal
    })
    if (outcome === 'gone') throw new Error('the registry store ended while it was starting')
    if (outcome === 'silent') throw new Error(`the registry store did not answer within ${READY_TIMEOUT_MS} ms`)
  }

  async #end (): Promise<void> {
    this.#isUp = false
    const child = this.#child
    if (!isRunning(child)) return
    const gone = once(child, 'exit')
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    await gone
    clearTimeout(timer)
    await rm(join(this.#runFolder, IDENTITY), { force: true })
  }

  // Only where the kernel could not do it (see #launch): ends a store that an earlier server left.
  async #endOrphan (): Promise<void> {
    const file = join(this.#runFolder, IDENTITY)
    const stored = parsed(await readIfThere(file))
    if (!Value.Check(Identity, stored) || !isAlive(stored)) return
    await endProcess(stored)
    this.#options.log.warn({ pid: stored.pid }, 'a registry store of an earlier server was ended')
  }
}

/** Undefined for an incomplete file. */
function parsed (text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? 'null')
  } catch {
    return undefined
  }
}

function isRunning (child: ChildProcess | undefined): child is ChildProcess {
  return child?.pid !== undefined && child.exitCode === null && child.signalCode === null
}

async function exited (child: ChildProcess | undefined, signal: AbortSignal): Promise<void> {
  if (!isRunning(child)) return
  try {
    await once(child, 'exit', { signal })
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

async function readdirIfThere (folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true })
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}

/** Whether there is any answer in time; its content does not matter. */
async function answers (socketPath: string, timeoutMs: number): Promise<boolean> {
  const request = get({ socketPath, path: '/v2/', agent: false })
  const timer = setTimeout(() => { request.destroy(new Error('no answer')) }, timeoutMs)
  try {
    const [response] = await once(request, 'response')
    if (response instanceof IncomingMessage) response.resume()
    return true
  } catch {
    return false
  } finally {
    clearTimeout(timer)
    request.destroy()
  }
}
