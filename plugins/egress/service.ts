// The service `egress`: which VM has which policy. The database has what a restart needs, and the proxy gets it as soon as possible.
import { randomUUID } from 'node:crypto'
import type { Logger, Secrets } from '../../core/contracts/services.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import type { Tracing } from '../../core/tracing/tracing.ts'
import type { VmPolicy } from '../../proxy/contract/control.ts'
import type { AuthorityMaker } from './authority.ts'
import type { EgressAudit, EgressAuthority, EgressRequest, EgressService, EgressSpec, EgressTrial, EgressVerdict } from '../instances/egress/contract.ts'
import { ControlRefused, type ControlClient } from './control/client.ts'
import { Keeper } from './control/keeper.ts'
import { EgressUnavailable } from './errors.ts'
import { composeVm, type Enforced } from './policy/compose.ts'
import type { EgressConfig } from './manifest.ts'
import type { NetworkService } from '../networking/contract.ts'
import { Pusher, type PusherOptions } from './policy/pusher.ts'
import { divideEnvironment, guestEnvironment, prepareSpec, rotateSpec } from './policy/spec.ts'
import { tryPolicy } from './policy/try.ts'
import type { ProxyProcess } from './process/proxy-process.ts'
import type { EgressRepository, VmRecord } from './repository.ts'
import { RequestTraces } from './traces.ts'

export interface EgressOptions {
  readonly repository: EgressRepository
  readonly secrets: Secrets
  readonly proxy: ProxyProcess
  readonly client: ControlClient
  readonly authority: AuthorityMaker
  readonly network: Pick<NetworkService, 'mediate' | 'proxyPlace'>
  readonly config: Pick<EgressConfig, 'ports' | 'deny' | 'passTraceparent'>
  readonly tracing: Tracing
  readonly log: Logger
  readonly onPush?: PusherOptions['onPush']
}

/** How long the start of a VM waits for its policy to be enforced. */
const ENFORCE_MS = 10_000
const LIFT_MS = 3_000

type Variables = Readonly<Record<string, string>>

export class Egress implements EgressService {
  readonly #options: EgressOptions
  readonly #keeper: Keeper
  readonly #pusher: Pusher
  readonly #traces: RequestTraces
  readonly #locks = createLocks()
  /** all VMs that may have a way out, as the proxy should know them */
  readonly #enforced = new Map<string, Enforced>()
  /** instances whose secrets could not be opened, and that were logged */
  readonly #complained = new Set<string>()
  #isAdopted = false
  /** whether somebody knows the VMs, even if `adopt` has failed */
  #isKnown = false
  /** where no guest may send, as last read */
  #denied: readonly string[] | undefined

  constructor (options: EgressOptions) {
    this.#options = options
    const { client, proxy, log, repository, tracing, config } = options
    this.#pusher = new Pusher({
      policies: { all: () => [...this.#enforced.values()].map((vm) => this.#compose(vm)), one: (instanceId) => this.#composeOne(instanceId) },
      denied: async () => await this.#deniedNow(),
      nextRevision: async (above) => await repository.nextRevision(above),
      tracing: () => tracing.maker === undefined ? undefined : { passTraceparent: config.passTraceparent },
      put: async (revision) => { await client.put(revision) },
      patch: async (change) => { await client.patch(change) },
      log,
      onPush: options.onPush,
      onFailure: () => { this.#keeper.doubt() }
    })
    this.#keeper = new Keeper({ client, proxy, log, onUp: (revision) => { this.#pusher.up(revision) }, onDown: () => { this.#pusher.down() }, onCheck: async () => { await this.#check() } })
    this.#traces = new RequestTraces({ tracing, client, log, isUp: () => this.#keeper.isUp, onChange: () => { this.#pusher.request() } })
  }

  /** the revision that is enforced, as far as this server knows */
  get revision (): number | undefined { return this.#pusher.revision }

  get isUp (): boolean { return this.#keeper.isUp }

  /** VMs that have a policy */
  get size (): number { return this.#enforced.size }

  async open (): Promise<void> {
    const { network, config: { ports }, repository } = this.#options
    // Before a guest of this server gets a network.
    await network.mediate(ports)
    await repository.open()
    this.#traces.start()
  }

  /** @param ending whether no VM outlives this server */
  async close (ending: boolean): Promise<void> {
    await this.abandon()
    // A proxy that nobody uses is ended; before `adopt`, it is unknown whether somebody does.
    if (ending || (this.#isAdopted && this.#enforced.size === 0)) await this.#options.proxy.stop()
  }

  /** To be called once nobody can call `adopt` any more: a proxy of an earlier server would put in for ever what nobody can change. */
  async endUnknown (): Promise<void> {
    if (!this.#isKnown) await this.#options.proxy.stop()
  }

  /** Ends the care for the proxy and leaves it running, as a crash does. */
  async abandon (): Promise<void> {
    await this.#traces.stop()
    this.#pusher.close()
    await this.#keeper.close()
  }

  async #check (): Promise<void> {
    await this.checkDenied()
    // Those that an earlier server has started; for each other one it was found out at its start.
    if (this.#enforced.size > 0) await this.#options.proxy.requireReach()
  }

  /** Checks whether the host's addresses have changed; no guest may reach them. */
  async checkDenied (): Promise<void> {
    if (!this.#pusher.denies(await this.#deniedNow())) this.#pusher.request()
  }

  prepare (request: EgressRequest): EgressSpec {
    return prepareSpec(request, this.#options.secrets)
  }

  async tryPolicy (trial: EgressTrial): Promise<EgressVerdict> {
    const { secrets, config: { ports }, proxy, client } = this.#options
    const ranges = proxy.ranges ?? await this.#ask(async () => await client.ranges())
    return tryPolicy(trial, { secrets, ports, ranges, denied: await this.#deniedNow() })
  }

  guestEnvironment (spec: EgressSpec, env: Variables): Variables {
    return guestEnvironment(spec, env)
  }

  divide (spec: EgressSpec, env: Variables): ReturnType<EgressService['divide']> {
    return divideEnvironment(spec, env)
  }

  rotate (spec: EgressSpec, env: Variables): EgressSpec {
    return rotateSpec(spec, env, this.#options.secrets)
  }

  async authority (): Promise<EgressAuthority> {
    const certificate = await this.#ask(async () => await this.#options.client.certificate())
    return await this.#options.authority.make(certificate)
  }

  async enforce (instanceId: string, address: string, spec: EgressSpec): Promise<void> {
    await this.#locks.hold(instanceId, async () => {
      this.#checkAdopted()
      try {
        await this.#keeper.ready()
        const record: VmRecord = { instanceId, address, epoch: randomUUID() }
        await this.#evict(address, instanceId)
        // The row comes first: after a kill it belongs to no running VM, and the next server removes it.
        await this.#options.repository.save(record)
        this.#enforced.set(instanceId, { ...record, spec })
        await this.#pusher.push(instanceId, ENFORCE_MS)
        await this.#options.proxy.requireReach()
      } catch (error) {
        await this.#remove(instanceId)
        this.#pusher.request()
        throw error
      }
    })
  }

  async replace (instanceId: string, spec: EgressSpec): Promise<void> {
    await this.#locks.hold(instanceId, async () => {
      this.#checkAdopted()
      const before = this.#enforced.get(instanceId)
      // The instance has no VM at the moment: its next one gets the policy at its start.
      if (before === undefined) return
      this.#enforced.set(instanceId, { ...before, spec })
      try {
        await this.#keeper.ready()
        await this.#pusher.push(instanceId, ENFORCE_MS)
      } catch (error) {
        this.#enforced.set(instanceId, before)
        this.#pusher.touch(instanceId)
        this.#pusher.request()
        throw error
      }
    })
  }

  async lift (instanceId: string): Promise<void> {
    await this.#locks.hold(instanceId, async () => {
      const wasEnforced = this.#enforced.has(instanceId)
      await this.#remove(instanceId)
      if (!wasEnforced) return
      if (this.#keeper.isFailing) return this.#pusher.request()
      await this.#pusher.push(instanceId, LIFT_MS).catch((error: unknown) => {
        this.#options.log.warn({ err: error, instanceId }, 'the egress proxy has not yet been told that a VM has ended')
      })
    })
  }

  async adopt (running: Parameters<EgressService['adopt']>[0]): Promise<void> {
    if (this.#isAdopted) throw new Error('the running VMs were named already')
    this.#isKnown = true
    const { repository, proxy } = this.#options
    const known = new Map((await repository.all()).map((record) => [record.instanceId, record]))
    for (const { instanceId, address, spec } of running) {
      const before = known.get(instanceId)
      const record = before?.address === address ? before : { instanceId, address, epoch: randomUUID() }
      if (record !== before) await repository.save(record)
      this.#enforced.set(instanceId, { ...record, spec })
    }
    for (const instanceId of known.keys()) if (!this.#enforced.has(instanceId)) await repository.remove(instanceId)
    this.#isAdopted = true
    this.#pusher.enable()
    // A proxy without VMs still has the revision of an earlier server.
    if (running.length > 0 || await proxy.isThere()) this.#keeper.start()
  }

  async audit (instanceId: string, { after = 0, limit }: { readonly after?: number, readonly limit: number }): Promise<EgressAudit> {
    return await this.#ask(async () => await this.#options.client.audit(instanceId, after, limit))
  }

  /** The proxy's own figures; `undefined` while it does not run. Rejects when it does not tell them, which the reader logs. */
  async proxyMetrics (): Promise<string | undefined> {
    return this.#keeper.isUp ? await this.#options.client.metrics() : undefined
  }

  /** @throws egress_unavailable */
  async #ask<T> (question: () => Promise<T>): Promise<T> {
    await this.#keeper.ready()
    try {
      return await question().catch(async (error: unknown) => {
        if (error instanceof ControlRefused) throw error
        // It may have ended a moment ago and be starting again.
        this.#keeper.doubt()
        await this.#keeper.ready()
        return await question()
      })
    } catch (error) {
      if (EgressUnavailable.is(error)) throw error
      throw EgressUnavailable.from(error, error instanceof ControlRefused ? `it answered ${error.status}: ${error.message}` : `it did not answer (${error instanceof Error ? error.message : String(error)})`)
    }
  }

  #checkAdopted (): void {
    if (!this.#isAdopted) throw new Error('adopt comes first: without it a revision would take the way out from VMs that run')
  }

  /** Removes the address from any other VM, for which `lift` was missed: a revision with one address twice would be refused as a whole. */
  async #evict (address: string, instanceId: string): Promise<void> {
    for (const other of [...this.#enforced.values()]) {
      if (other.address !== address || other.instanceId === instanceId) continue
      this.#options.log.error({ instanceId: other.instanceId, address }, 'the address of a VM with an egress policy went to another VM')
      await this.#remove(other.instanceId)
    }
  }

  async #remove (instanceId: string): Promise<void> {
    this.#enforced.delete(instanceId)
    this.#pusher.touch(instanceId)
    this.#complained.delete(instanceId)
    await this.#options.repository.remove(instanceId).catch((error: unknown) => {
      // The next server removes the rows of VMs that do not run.
      this.#options.log.error({ err: error, instanceId }, 'the epoch of a VM could not be removed')
    })
  }

  async #deniedNow (): Promise<readonly string[]> {
    const { config: { deny }, network, log } = this.#options
    // Without VMs nobody is allowed anything, and the network should not be made for this.
    if (this.#enforced.size === 0) return this.#denied ?? deny
    try {
      this.#denied = [...new Set([...deny, ...(await network.proxyPlace()).denied])]
    } catch (error) {
      // The proxy must learn that a VM has ended in any case.
      if (this.#denied === undefined) throw error
      log.warn({ err: error }, 'the host\'s addresses are not known anew; those of before stay denied')
    }
    return this.#denied
  }

  #composeOne (instanceId: string): VmPolicy | undefined {
    const vm = this.#enforced.get(instanceId)
    return vm === undefined ? undefined : this.#compose(vm)
  }

  #compose (vm: Enforced): VmPolicy {
    return composeVm(vm, this.#options.secrets, (error) => {
      if (this.#complained.has(vm.instanceId)) return
      this.#complained.add(vm.instanceId)
      this.#options.log.error({ err: error, instanceId: vm.instanceId }, 'a credential cannot be used: requests that need it are refused')
    })
  }
}
