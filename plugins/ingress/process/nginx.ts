// Manages nginx: starts it, adopts an earlier server's, replaces it when it has the wrong fingerprint, and restarts it when it ends.
import { setTimeout as sleep } from 'node:timers/promises'
import type { HostCommands, Logger, ProcessIdentity } from '../../../core/contracts/services.ts'
import { withSignals } from '../../../core/jobs/deadline.ts'
import { pause } from '../../../core/jobs/pause.ts'
import { endGently, endProcess } from '../../../core/process/end.ts'
import { isAlive, signalProcess } from '../../../core/process/identity.ts'
import type { ProcessRegister } from '../../../core/process/register.ts'
import { supervise } from '../../../core/process/supervise.ts'
import { checkTool } from '../../../core/process/tool-version.ts'
import { takesConnections } from '../../../core/process/unix-socket.ts'
import type { NetworkService } from '../../networking/contract.ts'
import { manifest, type IngressConfig } from '../manifest.ts'
import { writeConfig } from './files.ts'
import { findProcesses, isFit, type Found } from './find.ts'
import { boundNginxLog, launch } from './launch.ts'
import { STATUS_SOCKET, type IngressPaths } from './paths.ts'
import { makePlan, type Plan } from './plan.ts'

export interface NginxOptions {
  readonly config: IngressConfig
  readonly uid: number
  readonly paths: IngressPaths
  readonly network: Pick<NetworkService, 'proxyPlace'>
  readonly commands: HostCommands
  readonly processes: ProcessRegister
  readonly log: Logger
  readonly onStart: () => void
}

const CHECK_MS = 1000
const POLL_MS = 20
/** `worker_shutdown_timeout`, and a moment */
const DRAIN_MS = 8000
const ANSWER_MS = 5000
const RELOAD_MS = 10_000
/** title of a worker that accepts connections; the title of one that is shutting down continues with ` is shutting down` */
const WORKER = 'nginx: worker process'
/** number of failed queries in a row, while it runs, after which it counts as hanging */
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

  /** Resolves once it runs as it should. @throws Error that says why it does not */
  async start (signal: AbortSignal): Promise<void> {
    const { commands, log } = this.#options
    await checkTool('nginx', { commands, log, packages: manifest.hostPackages, signal })
    await withSignals([signal, this.#closing.signal], async (either) => { await this.#ensure(either) })
    this.#running = this.#keep()
  }

  /** Stops managing nginx, and leaves it running. */
  async abandon (): Promise<void> {
    this.#closing.abort(new Error('the server is stopping'))
    await this.#running
  }

  /** Ends nginx, and what an earlier server has left of it. */
  async end (): Promise<void> {
    await this.abandon()
    await endAll(this.#options.paths.folder)
    this.#problem = 'nginx has ended'
  }

  /** Lets nginx read the certificates' names again, and returns when it uses them; connections continue. @returns whether it does: none may run yet, or its workers take too long */
  async reload (): Promise<boolean> {
    if (this.#master === undefined) return false
    const workers = async (): Promise<Found[]> => (await findProcesses(this.#options.paths.folder)).filter(({ words }) => words === WORKER)
    const before = new Set((await workers()).map(({ identity: { pid } }) => pid))
    if (!signalProcess(this.#master, 'SIGHUP')) return false
    const deadline = performance.now() + RELOAD_MS
    // Polled: the old workers change their title, or are gone.
    while ((await workers()).some(({ identity: { pid } }) => before.has(pid))) {
      if (performance.now() > deadline) return false
      await sleep(POLL_MS)
    }
    return true
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
    const { address, http, https } = config.listen
    const identity = await launch(plan, paths, { address, ports: [...http, ...https] }, async () => await answers(paths.run), signal)
    this.#master = identity
    this.#problem = undefined
    onStart()
    log.info({ pid: identity.pid, uid }, 'nginx has started')
  }

  /** An nginx that another server has started, when it answers. */
  async #fitting (plan: Plan): Promise<ProcessIdentity | undefined> {
    const { paths } = this.#options
    const found = await findProcesses(paths.folder)
    const fits = await Promise.all(found.map(async (each) => await isFit(each, plan)))
    const fit = found.find((_each, index) => fits[index])
    return fit !== undefined && await answers(paths.run) ? fit.identity : undefined
  }

  async #keep (): Promise<void> {
    await supervise({
      name: 'nginx',
      log: this.#options.log,
      tracking: { processes: this.#options.processes, plugin: manifest.id, name: 'nginx', identity: () => this.#master },
      untilWrong: async (signal) => {
        const wrong = await this.#untilWrong(signal)
        if (wrong !== undefined) this.#problem = `nginx ${wrong}`
        return wrong
      },
      start: async (signal) => {
        this.#master = undefined
        try {
          await this.#ensure(signal)
        } catch (error) {
          this.#problem = error instanceof Error ? error.message : String(error)
          throw error
        }
      }
    }, this.#closing.signal)
  }

  async #untilWrong (signal: AbortSignal): Promise<string | undefined> {
    const { log, paths } = this.#options
    for (let missed = 0; missed < HANGING;) {
      await pause(CHECK_MS, signal)
      if (signal.aborted) return undefined
      if (this.#master === undefined || !isAlive(this.#master)) return 'has ended'
      missed = await answers(paths.run) ? 0 : missed + 1
      await boundNginxLog(paths).catch((error: unknown) => { log.warn({ err: error }, 'the log of nginx could not be bounded') })
    }
    return 'does not answer'
  }
}

/** Whether it answers soon. */
async function answers (folder: string): Promise<boolean> {
  try {
    return await Promise.race([takesConnections(folder, STATUS_SOCKET), sleep(ANSWER_MS, false, { ref: false })])
  } catch {
    return false
  }
}

/** Running requests get a moment; then all processes are ended. */
export async function endAll (folder: string): Promise<void> {
  const masters = (await findProcesses(folder)).filter(({ isMaster }) => isMaster)
  // A master ends once its workers have.
  await Promise.all(masters.map(async ({ identity }) => { await endGently(identity, { request: 'SIGQUIT', withinMs: DRAIN_MS }) }))
  for (const { identity } of await findProcesses(folder)) await endProcess(identity)
}
