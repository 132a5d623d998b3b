// Runs the real server as a process on a private folder, for the quickstart, the tests and the benchmarks.
import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, mkdir, open, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { hasCode } from '../../core/errors/system-code.ts'
import { packageRoot } from '../../core/package-root.ts'
import { withoutDeleted } from '../structure/deleted.ts'
import { mountsIn, processesIn, type Leftover } from './leftovers.ts'
import { keepProof, keepSystem, seedProof, seedSystem } from './system-cache.ts'

export interface PluginOptions { readonly enabled?: boolean, readonly onFailure?: string, readonly module?: string, readonly config?: Readonly<Record<string, unknown>> }

export interface ServerOptions {
  /** an empty or absent folder that belongs to this server alone */
  readonly folder: string
  /** another build of the server: its `core/main.js` */
  readonly program?: string
  /** merged into the configuration, section by section */
  readonly server?: Readonly<Record<string, unknown>>
  readonly database?: Readonly<Record<string, unknown>>
  readonly plugins?: Readonly<Record<string, PluginOptions>>
  readonly logLevel?: string
  readonly env?: Readonly<Record<string, string>>
  /** for Node itself, such as `--cpu-prof` */
  readonly nodeArguments?: readonly string[]
  readonly signal?: AbortSignal
  /** time for the server to listen, on a slow host */
  readonly readyTimeoutMs?: number
  /** whether the server keeps running when the caller ends */
  readonly detached?: boolean
}

export interface ServerProcess {
  readonly url: string
  /** an admin key */
  readonly key: string
  readonly pid: number
  readonly folder: string
  readonly dataDir: string
  readonly logFile: string
  /** Resolves when the process has ended, with how it ended. */
  readonly ended: Promise<string>
  /** Asks the server to end, waits, and kills it after a while. */
  stop (): Promise<void>
  /** Kills the server like a crash; its machines go on. */
  kill (): Promise<void>
  /** A new server on the same folder. */
  restart (changes?: Partial<ServerOptions>): Promise<ServerProcess>
}

const mainFile = join(dirname(fileURLToPath(import.meta.url)), '../../core/main.js')
const cacheFolder = join(packageRoot, '.cache')
const systemCache = join(cacheFolder, 'system')
const packageCache = join(cacheFolder, 'packages')
const defaultReadyTimeoutMs = 120_000
const stopTimeoutMs = 60_000
const ENDING_MS = 3000

/** Starts a server and resolves when it listens. If it fails, the error's message has the cause. */
export async function startServer (options: ServerOptions): Promise<ServerProcess> {
  const { folder } = options
  const dataDir = join(folder, 'data')
  await mkdir(dataDir, { recursive: true })
  // Machines run as users of their own, who must reach their disks.
  await chmod(folder, 0o711)
  await seedDataFolder(dataDir)
  const key = await privateKey(join(folder, 'key'))
  const configFile = join(folder, 'berth.yaml')
  await writeFile(configFile, JSON.stringify(configuration(options, dataDir), undefined, 2))
  const logFile = join(folder, 'server.log')
  const log = await open(logFile, 'a')
  const offset = (await log.stat()).size
  const command = [process.execPath, ...options.nodeArguments ?? [], options.program ?? mainFile, 'serve', '--config', configFile]
  // A caller that is killed cannot end its server, so the server ends itself in order.
  const [program = '', ...args] = options.detached === true ? command : ['setpriv', '--pdeathsig', 'TERM', ...command]
  const child = spawn(program, args, {
    cwd: folder,
    // A group of its own, so that Ctrl-C only reaches the program that started the server, which then ends it in order.
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
    env: { ...process.env, ...options.env, BERTH_API_KEY: key }
  })
  const ended = new Promise<string>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => resolve(signal === null ? `ended with code ${code ?? 0}` : `was ended by ${signal}`))
  })
  await log.close()
  if (options.detached === true) child.unref()
  const pid = child.pid
  if (pid === undefined) throw new Error(await ended)
  const end = async (): Promise<void> => await endProcess(child, ended)
  try {
    const url = await listeningAt(logFile, offset, ended, options)
    return {
      url, key, pid, folder, dataDir, logFile, ended,
      stop: end,
      kill: async () => {
        child.kill('SIGKILL')
        await ended
      },
      restart: async (changes = {}) => await startServer({ ...options, ...changes })
    }
  } catch (error) {
    await end()
    throw error
  }
}

/** Gives a new data folder what servers of this checkout have made and found out before: the guests' system, and whether VMs can be saved. */
export async function seedDataFolder (dataDir: string): Promise<void> {
  await seedSystem(systemCache, dataDir)
  await seedProof(cacheFolder, dataDir)
}

/** Tells servers that are started from now on what this one has found out about its VMM. */
export async function shareProofs ({ dataDir }: Pick<ServerProcess, 'dataDir'>): Promise<void> {
  await keepProof(cacheFolder, dataDir)
}

/** Ends what a server may have left, keeps the guest system for the next one, and removes the folder. Reports what it had to end. */
export async function removeServerFolder (folder: string): Promise<string[]> {
  const found: string[] = []
  for (const { pid, command } of await stayingIn(folder)) {
    found.push(`process ${pid}: ${command}`)
    signalProcess(pid, 'SIGKILL')
  }
  for (const point of await mountsIn(folder)) found.push(`mount ${point}`)
  if (found.some(line => line.startsWith('mount '))) return found
  await keepSystem(systemCache, join(folder, 'data'))
  await keepProof(cacheFolder, join(folder, 'data'))
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  return found
}

/** The processes that stay in a folder, without those that are about to end anyway, such as the guard of logs after the end of its server. */
async function stayingIn (folder: string): Promise<readonly Leftover[]> {
  for (const deadline = performance.now() + ENDING_MS; ;) {
    const found = await processesIn(folder)
    if (found.length === 0 || performance.now() > deadline) return found
    await delay(50)
  }
}

/** The last lines of a server's log, for people. */
export async function lastLogLines (logFile: string, count: number): Promise<string> {
  return (await readFile(logFile, 'utf8')).trimEnd().split('\n').slice(-count).join('\n')
}

function configuration (options: ServerOptions, dataDir: string): unknown {
  const guest = options.plugins?.['guest']
  return {
    server: { listen: '127.0.0.1:0', dataDir, stopInstancesOnExit: true, metrics: { enabled: true, listen: '127.0.0.1:0' }, ...options.server },
    ...(options.database === undefined ? {} : { database: options.database }),
    log: { level: options.logLevel ?? 'info' },
    // A network takes namespaces and processes, and by default changes the host's; and this host may be smaller than what a test or a benchmark needs.
    // A caller that needs one or the other configures it.
    plugins: withoutDeleted({ networking: { enabled: false }, resources: { enabled: false }, ...options.plugins, guest: { ...guest, config: { kernelCache: packageCache, ...guest?.config } } })
  }
}

/** The admin key of this folder, the same after a restart. */
async function privateKey (file: string): Promise<string> {
  try {
    await writeFile(file, randomBytes(24).toString('base64url'), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
  return await readFile(file, 'utf8')
}

/**
 * The address in the line `listening` that the server logs after `offset`. The file is polled, since a
 * regular file has no event for "grew" that works on every file system.
 */
async function listeningAt (logFile: string, offset: number, ended: Promise<string>, { readyTimeoutMs = defaultReadyTimeoutMs, signal }: Pick<ServerOptions, 'readyTimeoutMs' | 'signal'>): Promise<string> {
  let fate: string | undefined
  ended.then((how) => { fate = how }, (error: unknown) => { fate = String(error) })
  const deadline = Date.now() + readyTimeoutMs
  while (true) {
    const url = listeningLine((await readFile(logFile)).subarray(offset).toString())
    if (url !== undefined) return url
    if (fate !== undefined) throw new Error(`the server ${fate}; its last log lines:\n${await lastLogLines(logFile, 20)}`)
    if (Date.now() > deadline) throw new Error(`the server did not listen within ${readyTimeoutMs / 1000} s; its last log lines:\n${await lastLogLines(logFile, 20)}`)
    await delay(20, undefined, signal === undefined ? {} : { signal })
  }
}

function listeningLine (text: string): string | undefined {
  for (const line of text.split('\n')) {
    if (!line.includes('"listening"')) continue
    const entry: unknown = JSON.parse(line)
    if (typeof entry === 'object' && entry !== null && 'msg' in entry && entry.msg === 'listening' && 'url' in entry) return String(entry.url)
  }
  return undefined
}

/** Signals through the child object, which knows when the pid no longer belongs to the process. */
async function endProcess (child: ChildProcess, ended: Promise<string>): Promise<void> {
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
  await ended.catch(() => undefined)
  clearTimeout(timer)
}

/** A process that has ended needs no signal. */
function signalProcess (pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error
  }
}
