// Brings whole policy revisions to the proxy: one at a time, all changes of meanwhile in the next one, and each known to be enforced before anybody is told.
import type { Logger } from '../../../core/contracts/services.ts'
import type { PolicyRevision, TracingPolicy, VmPolicy } from '../../../proxy/contract/control.ts'
import { ControlRefused } from '../control/client.ts'
import { EgressUnavailable } from '../errors.ts'

export interface PusherOptions {
  /** all VMs, as they are to be from now on */
  readonly compose: () => readonly VmPolicy[]
  /** where none of them may send, as of now */
  readonly denied: () => Promise<readonly string[]>
  /** a number above all before, and above this one */
  readonly nextRevision: (above: number) => Promise<number>
  /** `undefined`: nobody takes traces */
  readonly tracing: () => TracingPolicy | undefined
  readonly put: (revision: PolicyRevision) => Promise<void>
  readonly log: Logger
  readonly onPush?: (outcome: 'enforced' | 'failed') => void
  readonly onFailure?: () => void
}

interface Waiter {
  readonly version: number
  resolve (): void
  reject (error: unknown): void
}

const RETRY_MS = 1000
const STALE = 409
const INVALID = 400

export class Pusher {
  readonly #options: PusherOptions
  readonly #waiters = new Set<Waiter>()
  /** of VMs whose policy the proxy does not take, why */
  readonly #refused = new Map<string, string>()
  /** counts changes; the proxy has all up to `#done` */
  #wanted = 0
  #done = 0
  #revision: number | undefined
  /** highest number that the proxy is known to have had */
  #seen = 0
  #isUp = false
  /** the proxy is of a version before traces */
  #isUntraced = false
  #isEnabled = false
  #running = false
  #retry: NodeJS.Timeout | undefined

  constructor (options: PusherOptions) {
    this.#options = options
  }

  /** the revision that is enforced, as far as this server knows */
  get revision (): number | undefined { return this.#revision }

  /** From now on there is something to tell; before, the proxy keeps what an earlier server told it. */
  enable (): void {
    this.#isEnabled = true
    this.request()
  }

  /** The proxy answers. One that has begun anew, or was told something by somebody else, is told everything again. */
  up (revision: number | null): void {
    this.#isUp = true
    this.#isUntraced = false
    this.#seen = Math.max(this.#seen, revision ?? 0)
    if (revision !== this.#revision) {
      this.#revision = undefined
      this.#wanted++
    }
    void this.#run()
  }

  down (): void {
    this.#isUp = false
  }

  /** Something has changed; it is pushed when that is possible. */
  request (): void {
    this.#wanted++
    void this.#run()
  }

  /** The same, and resolves once it is enforced. @throws egress_unavailable when it is not in time */
  async push (instanceId: string, timeoutMs: number): Promise<void> {
    this.#refused.delete(instanceId)
    const version = ++this.#wanted
    let timer: NodeJS.Timeout | undefined
    const enforced = new Promise<void>((resolve, reject) => {
      const waiter: Waiter = { version, resolve, reject }
      this.#waiters.add(waiter)
      timer = setTimeout(() => {
        this.#waiters.delete(waiter)
        reject(EgressUnavailable(`it has not taken the policy of ${instanceId} within ${timeoutMs} ms`))
      }, timeoutMs)
    })
    void this.#run()
    await enforced.finally(() => clearTimeout(timer))
    const refusal = this.#refused.get(instanceId)
    if (refusal !== undefined) throw EgressUnavailable(`it does not take the policy of ${instanceId}: ${refusal}`)
  }

  close (): void {
    this.#isUp = false
    clearTimeout(this.#retry)
    for (const waiter of this.#waiters) waiter.reject(EgressUnavailable('the server is stopping'))
    this.#waiters.clear()
  }

  async #run (): Promise<void> {
    if (this.#running || !this.#isEnabled) return
    this.#running = true
    try {
      while (this.#isUp && this.#done < this.#wanted) {
        const version = this.#wanted
        await this.#send()
        this.#done = version
        for (const waiter of [...this.#waiters]) {
          if (waiter.version > version) continue
          this.#waiters.delete(waiter)
          waiter.resolve()
        }
      }
    } catch (error) {
      this.#options.onPush?.('failed')
      this.#options.onFailure?.()
      this.#options.log.warn({ err: error }, 'the egress proxy has not taken a policy revision; it is tried again')
      // It may come back with the connection, or have had no memory for a moment: only the first is an event.
      clearTimeout(this.#retry)
      this.#retry = setTimeout(() => { void this.#run() }, RETRY_MS).unref()
    } finally {
      this.#running = false
    }
  }

  async #send (): Promise<void> {
    for (;;) {
      const denied = await this.#options.denied()
      const vms = this.#options.compose().filter(({ id }) => !this.#refused.has(id))
      const revision = await this.#options.nextRevision(this.#seen)
      const tracing = this.#isUntraced ? undefined : this.#options.tracing()
      try {
        await this.#options.put({ revision, denied, ...tracing === undefined ? {} : { tracing }, vms })
        this.#revision = revision
        this.#seen = revision
        this.#options.onPush?.('enforced')
        return
      } catch (error) {
        if (!(error instanceof ControlRefused)) throw error
        if (error.status === STALE) this.#seen = Math.max(this.#seen, revision, Number(/\d+/.exec(error.message)?.[0] ?? 0))
        else if (error.status === INVALID && tracing !== undefined && error.message.startsWith('tracing')) this.#setTracesAside(error.message)
        else if (error.status !== INVALID || !this.#setAside(vms, error.message)) throw error
      }
    }
  }

  /** What it enforces matters more. */
  #setTracesAside (message: string): void {
    this.#options.log.warn({ reason: message }, 'the egress proxy is older than this server, and tells nothing for traces')
    this.#isUntraced = true
  }

  /** One VM's policy that cannot be enforced must not keep the others' from being: it has no way out, and its caller hears why. */
  #setAside (vms: readonly VmPolicy[], message: string): boolean {
    const vm = vms[Number(/^vms\[(\d+)\]/.exec(message)?.[1] ?? -1)]
    if (vm === undefined) return false
    this.#options.log.error({ instanceId: vm.id, reason: message }, 'the egress proxy does not take the policy of a VM, which has no way out now')
    this.#refused.set(vm.id, message)
    return true
  }
}
