// A proxy that this server starts, adopts from an earlier server, replaces when it has the wrong fingerprint, and ends.
import { durationMs } from '../../../core/config/quantities.ts'
import type { HostCommands, Logger, ProcessIdentity } from '../../../core/contracts/services.ts'
import { endGently } from '../../../core/process/end.ts'
import { isAlive } from '../../../core/process/identity.ts'
import { TrackedProcess, type ProcessRegister } from '../../../core/process/register.ts'
import type { OwnRanges } from '../../../proxy/contract/control.ts'
import type { NetworkService } from '../../networking/contract.ts'
import { EgressUnavailable } from '../errors.ts'
import type { ControlClient } from '../control/client.ts'
import { manifest, type EgressConfig } from '../manifest.ts'
import { endAll, STOP_MS } from './end-all.ts'
import { findProxies, type FoundProxy } from './find.ts'
import { prepareFiles } from './files.ts'
import { boundProxyLog, launchProxy, untilProxyAnswers, type LaunchOptions } from './launch.ts'
import type { EgressPaths } from './paths.ts'
import { DRAIN_MS, makePlan, programDigest, type Plan } from './plan.ts'
import type { ProxyProcess } from './proxy-process.ts'
import { resolveUser, type ProxyUser } from './user.ts'

export interface ManagedProxyOptions {
  readonly config: EgressConfig
  readonly dataDir: string
  readonly paths: EgressPaths
  readonly network: Pick<NetworkService, 'proxyPlace'>
  readonly commands: HostCommands
  readonly processes: ProcessRegister
  readonly client: ControlClient
  readonly log: Logger
  readonly onStart?: () => void
}

export class ManagedProxy implements ProxyProcess {
  readonly #options: ManagedProxyOptions
  readonly #track: TrackedProcess
  #identity: ProcessIdentity | undefined
  #program: Promise<string> | undefined

  constructor (options: ManagedProxyOptions) {
    this.#options = options
    this.#track = new TrackedProcess({ processes: options.processes, plugin: manifest.id, name: 'egress proxy', identity: () => this.#identity })
  }

  get ranges (): OwnRanges {
    return { allowPrivate: this.#options.config.allowPrivate, deny: [] }
  }

  get startMs (): number {
    return durationMs(this.#options.config.proxy.startTimeout)
  }

  get #launchOptions (): LaunchOptions {
    const { paths, client } = this.#options
    return { paths, client, startMs: this.startMs }
  }

  async ensure (signal: AbortSignal): Promise<void> {
    if (this.#identity !== undefined && !isAlive(this.#identity)) this.#track.ended('has ended')
    await this.#ensure(signal)
    this.#track.started()
  }

  async #ensure (signal: AbortSignal): Promise<void> {
    const { paths, log, onStart } = this.#options
    const plan = await this.#plan()
    const found = await this.#find(plan)
    const fitting = found.find((proxy) => fits(proxy, plan))
    for (const { identity } of found) if (identity !== fitting?.identity) await this.#replace(identity, signal)
    if (fitting !== undefined && await this.#adopt(fitting.identity, signal)) return
    signal.throwIfAborted()
    await prepareFiles(paths, plan)
    const began = performance.now()
    this.#identity = await launchProxy(plan, this.#launchOptions, signal)
    onStart?.()
    log.info({ pid: this.#identity.pid, uid: plan.user.uid, startMs: Math.round(performance.now() - began) }, 'the egress proxy has started')
  }

  async isFit (): Promise<boolean> {
    const plan = await this.#plan()
    await boundProxyLog(this.#options.paths)
    return (await this.#find(plan)).some((proxy) => fits(proxy, plan))
  }

  /** Does not make the namespace when it is missing. */
  async isThere (): Promise<boolean> {
    return (await findProxies(this.#options.paths.folder, undefined, (await this.#user()).uid)).length > 0
  }

  /** It was told the guests' place as it was started. */
  async requireReach (): Promise<void> {}

  async stop (): Promise<void> {
    await endAll(this.#options.paths, (await this.#user()).uid)
  }

  async #plan (): Promise<Plan> {
    const { config, network } = this.#options
    this.#program ??= programDigest()
    const [place, user, program] = await Promise.all([network.proxyPlace(), this.#user(), this.#program])
    return await makePlan({ config, place, user, program })
  }

  async #find ({ namespace, user }: Plan): Promise<FoundProxy[]> {
    return await findProxies(this.#options.paths.folder, namespace, user.uid)
  }

  async #user (): Promise<ProxyUser> {
    const { config, dataDir, commands } = this.#options
    return await resolveUser(config.proxy.user, dataDir, commands)
  }

  /** Whether it answers, which may take a moment: a proxy of an earlier server may still be starting, or about to end. */
  async #adopt (identity: ProcessIdentity, signal: AbortSignal): Promise<boolean> {
    const outcome = await untilProxyAnswers(this.#launchOptions, signal, () => isAlive(identity))
    if (outcome === 'silent') throw EgressUnavailable(`the one that an earlier server has started (process ${identity.pid}) does not answer`)
    if (outcome === 'answers') this.#identity = identity
    return outcome === 'answers'
  }

  /** Ends it once what is under way has finished; meanwhile it takes nothing new. */
  async #replace (identity: ProcessIdentity, signal: AbortSignal): Promise<void> {
    this.#options.log.info({ pid: identity.pid }, 'the egress proxy is replaced: its program, its configuration or its namespace is another one now')
    await endGently(identity, { withinMs: DRAIN_MS + STOP_MS, signal })
    this.#track.ended('was replaced')
  }
}

function fits ({ isAtHome, fingerprint }: FoundProxy, plan: Plan): boolean {
  return isAtHome && fingerprint === plan.fingerprint
}
