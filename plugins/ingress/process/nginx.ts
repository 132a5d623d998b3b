// nginx as this server keeps it: started, taken over from an earlier server, replaced when it is not as it should be, started again when it ends.
import { setTimeout as sleep } from 'node:timers/promises'
import type { HostCommands, Logger, ProcessIdentity } from '../../../core/contracts/services.ts'
import { endProcess } from '../../../core/process/end.ts'
import { isAlive, signalProcess } from '../../../core/process/identity.ts'
import { checkTool } from '../../../core/process/tool-version.ts'
import { connectUnix } from '../../../core/process/unix-socket.ts'
import type { NetworkService } from '../../networking/contract.ts'
import type { IngressConfig } from '../manifest.ts'
import { writeConfig } from './files.ts'
import { findProcesses, isFit, type Found } from './find.ts'
import { boundLog, launch } from './launch.ts'
import { openListeners } from './listeners.ts'
import { STATUS_SOCKET, type IngressPaths } from './paths.ts'
import { makePlan, type Plan } from './plan.ts'

export interface NginxOptions {
  readonly config: IngressConfig
  readonly uid: number
  readonly paths: IngressPaths
  readonly network: Pick<NetworkService, 'proxyPlace'>
  readonly commands: HostCommands
  readonly log: Logger
  readonly onStart: () => void
}

const CHECK_MS = 1000
const POLL_MS = 20
/** `worker_shutdown_timeout`, and a moment */
const DRAIN_MS = 8000
const LONGEST_PAUSE_MS = 10_000
const ANSWER_MS = 5000
const RELOAD_MS = 10_000
/** title of one that takes connections; one that shuts down goes on with `is shutting down` */
const WORKER = 'nginx: worker process\0'
/** so often in a row it has not answered, although it runs */
const HANGING = 3

export class Nginx {
  readonly #options: NginxOptions
  readonly #closing = new AbortController()
  #running: Promise<void> | undefined
  #master: ProcessIdentity | undefined
  #problem: string | undefined = 'nginx has not started yet'

  constructor (options: NginxOptions) {
    this.#options = options
  }

  /** Why nothing is served; undefined when nginx runs. */
  get problem (): string | undefined {
    return this.#problem
  }

  get pid (): number | undefined {
    return this.#master?.pid
  }

  /** Resolves once it runs as it should. @throws Error that says why not */
  async start (signal: AbortSignal): Promise<void> {
    const { commands, log } = this.#options
    await checkTool('nginx', { commands, log, signal, option: '-v' })
    await this.#ensure(AbortSignal.any([signal, this.#closing.signal]))
    this.#running = this.#keep()
  }

  /** Ends the care for it, and leaves it as it is. */
  async abandon (): Promise<void> {
    this.#closing.abort(new Error('the server is stopping'))
    await this.#running
  }

  /** Ends it, and whatever an earlier server has left of it. */
  async end (): Promise<void> {
    await this.abandon()
    await endAll(this.#options.paths.folder)
    this.#problem = 'nginx has ended'
  }

  /** Has it read certificates' names again, and returns when it goes by them; connections go on. */
  async reload (): Promise<void> {
    if (this.#master === undefined) return
    const workers = async (): Promise<Found[]> => (await findProcesses(this.#options.paths.folder)).filter(({ words }) => words.startsWith(WORKER))
    const before = new Set((await workers()).map(({ identity: { pid } }) => pid))
    if (!signalProcess(this.#master, 'SIGHUP')) return
    const deadline = performance.now() + RELOAD_MS
    // Polled: those of before say that they shut down, or are gone.
    while ((await workers()).some(({ identity: { pid } }) => before.has(pid)) && performance.now() < deadline) await sleep(POLL_MS)
  }

  async #ensure (signal: AbortSignal): Promise<void> {
    const { config, uid, paths, network, log, onStart } = this.#options
    const { namespace } = await network.proxyPlace()
    const plan = makePlan(config, uid, namespace)
    const fit = await this.#fitting(plan)
    if (fit !== undefined) {
      this.#master = fit
      this.#problem = undefined
      return
    }
    await endAll(paths.folder)
    signal.throwIfAborted()
    await writeConfig(paths, plan)
    const { identity } = await launch(plan, paths, async () => await openListeners(config.listen.address, [...config.listen.http, ...config.listen.https]), async () => await answers(paths.run), signal)
    this.#master = identity
    this.#problem = undefined
    onStart()
    log.info({ pid: identity.pid, uid }, 'nginx has started')
  }

  /** One that another server has started, when it answers. */
  async #fitting (plan: Plan): Promise<ProcessIdentity | undefined> {
    const { paths } = this.#options
    const found = await findProcesses(paths.folder)
    const fits = await Promise.all(found.map(async (each) => await isFit(each, plan)))
    const fit = found.find((_each, index) => fits[index])
    return fit !== undefined && await answers(paths.run) ? fit.identity : undefined
  }

  async #keep (): Promise<void> {
    const { log, paths } = this.#options
    const { signal } = this.#closing
    let missed = 0
    let pauseMs = POLL_MS
    while (!signal.aborted) {
      await sleep(CHECK_MS, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      const isThere = this.#master !== undefined && isAlive(this.#master)
      missed = isThere && !await answers(paths.run) ? missed + 1 : 0
      if (isThere && missed < HANGING) {
        await boundLog(paths.log).catch((error: unknown) => { log.warn({ err: error }, 'the log of nginx could not be bounded') })
        pauseMs = POLL_MS
        continue
      }
      this.#problem ??= isThere ? 'nginx does not answer' : 'nginx has ended'
      log.error({ problem: this.#problem }, 'nginx is started again')
      this.#master = undefined
      try {
        await this.#ensure(signal)
        missed = 0
      } catch (error) {
        if (signal.aborted) return
        this.#problem = error instanceof Error ? error.message : String(error)
        log.error({ err: error }, 'nginx could not be started')
        await sleep(pauseMs, undefined, { signal }).catch(() => {})
        pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
      }
    }
  }
}

/** Whether it takes connections. */
async function answers (folder: string): Promise<boolean> {
  try {
    const socket = await Promise.race([connectUnix(folder, STATUS_SOCKET), sleep(ANSWER_MS, undefined, { ref: false })])
    socket?.destroy()
    return socket !== undefined
  } catch {
    return false
  }
}

/** What is under way gets a moment; then nothing of it is left. */
export async function endAll (folder: string): Promise<void> {
  const found = await findProcesses(folder)
  for (const { identity, isMaster } of found) if (isMaster) signalProcess(identity, 'SIGQUIT')
  const deadline = performance.now() + (found.some(({ isMaster }) => isMaster) ? DRAIN_MS : 0)
  // Polled: only a parent hears of an exit.
  while (found.some(({ identity }) => isAlive(identity)) && performance.now() < deadline) await sleep(POLL_MS)
  for (const { identity } of await findProcesses(folder)) await endProcess(identity)
}
