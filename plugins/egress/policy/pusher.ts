// Sends policy revisions to the proxy, as differences where its revision is known: one at a time, with all changes since the last one, and callers are told only after the acknowledgement.
import type { Logger } from '../../../core/contracts/services.ts'
import type { PolicyChange, PolicyRevision, TracingPolicy, VmPolicy } from '../../../proxy/contract/control.ts'
import { ControlRefused } from '../control/client.ts'
import { EgressUnavailable } from '../errors.ts'
import { Told, type Policies } from './told.ts'

export interface PusherOptions {
  /** the policies of the VMs from now on */
  readonly policies: Policies
  /** where no VM may send, as of now */
  readonly denied: () => Promise<readonly string[]>
  /** a number greater than all earlier ones and than `above` */
  readonly nextRevision: (above: number) => Promise<number>
  /** `undefined`: the server takes no traces */
  readonly tracing: () => TracingPolicy | undefined
  readonly put: (revision: PolicyRevision) => Promise<void>
  readonly patch: (change: PolicyChange) => Promise<void>
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
const UNKNOWN = 404

export class Pusher {
  readonly #options: PusherOptions
  readonly #waiters = new Set<Waiter>()
  /** VM → why the proxy refuses its policy */
  readonly #refused = new Map<string, string>()
  readonly #told: Told
  /** whether the proxy takes differences, as far as is known */
  #takesChanges = true
  /** counts changes; the proxy has all of them up to `#done` */
  #wanted = 0
  #done = 0
  #revision: number | undefined
  /** highest number that the proxy is known to have had */
  #seen = 0
  #isUp = false
  /** whether the proxy is of a version without traces */
  #isUntraced = false
  #isEnabled = false
  #running = false
  #retry: NodeJS.Timeout | undefined

  constructor (options: PusherOptions) {
    this.#options = options
    this.#told = new Told(options.policies)
  }

  /** the revision that is enforced, as far as this server knows */
  get revision (): number | undefined { return this.#revision }

  /** Pushes from now on; before, the proxy keeps the revision of an earlier server. */
  enable (): void {
    this.#isEnabled = true
    this.request()
  }

  /** The proxy answers. When it has restarted, or has a revision of somebody else, it is sent everything again. */
  up (revision: number | null): void {
    this.#isUp = true
    this.#isUntraced = false
    this.#seen = Math.max(this.#seen, revision ?? 0)
    // It may be another version of the program now.
    this.#takesChanges = true
    if (revision !== this.#revision) {
      this.#revision = undefined
      this.#told.forget()
      this.#wanted++
    }
    void this.#run()
  }

  down (): void {
    this.#isUp = false
  }

  /** This VM's policy has changed or was removed; the next push contains it. */
  touch (instanceId: string): void {
    this.#told.touch(instanceId)
  }

  /** Whether these addresses, and no others, are denied by what the proxy has taken. */
  denies (denied: readonly string[]): boolean {
    return this.#told.denies(denied)
  }

  /** Something has changed; it is pushed as soon as that is possible. */
  request (): void {
    this.#wanted++
    void this.#run()
  }

  /** The same, and resolves once it is enforced. @throws egress_unavailable when it is not in time */
  async push (instanceId: string, timeoutMs: number): Promise<void> {
    this.#refused.delete(instanceId)
    this.touch(instanceId)
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
      // The proxy may come back with its connection, or may only have been out of memory for a moment: only the first has an event.
      clearTimeout(this.#retry)
      this.#retry = setTimeout(() => { void this.#run() }, RETRY_MS).unref()
    } finally {
      this.#running = false
    }
  }

  async #send (): Promise<void> {
    for (;;) {
      const denied = await this.#options.denied()
      const revision = await this.#options.nextRevision(this.#seen)
      const sent = this.#next(revision, denied)
      try {
        await ('base' in sent ? this.#options.patch(sent) : this.#options.put(sent))
        this.#told.taken(sent)
        this.#revision = revision
        this.#seen = revision
        this.#options.onPush?.('enforced')
        return
      } catch (error) {
        // After a failure it is unknown what the proxy has, until it was sent everything.
        this.#told.forget()
        if (!(error instanceof ControlRefused) || !this.#canGoOn(sent, error)) throw error
      }
    }
  }

  /** Drops `tracing` from the next revisions: policies matter more than traces. */
  #setTracesAside (message: string): void {
    this.#options.log.warn({ reason: message }, 'the egress proxy is older than this server, and tells nothing for traces')
    this.#isUntraced = true
  }

  #next (revision: number, denied: readonly string[]): PolicyRevision | PolicyChange {
    const isLeftOut = (id: string): boolean => this.#refused.has(id)
    const around = { denied, tracing: this.#isUntraced ? undefined : this.#options.tracing() }
    const change = this.#revision === undefined || !this.#takesChanges ? undefined : this.#told.change(this.#revision, revision, around, isLeftOut)
    return change ?? this.#told.whole(revision, around, isLeftOut)
  }

  /** Whether another attempt can succeed. */
  #canGoOn (sent: PolicyRevision | PolicyChange, error: ControlRefused): boolean {
    if (error.status === INVALID && this.#setAside(sent.vms, error)) return true
    if ('base' in sent) {
      // An older proxy knows no differences; any other takes the whole revision, whatever it refused in this difference.
      if (error.status === UNKNOWN) this.#takesChanges = false
      return true
    }
    if (error.status === INVALID && sent.tracing !== undefined && error.at?.field === 'tracing') {
      this.#setTracesAside(error.message)
      return true
    }
    if (error.status === STALE) this.#seen = Math.max(this.#seen, sent.revision, error.revision ?? 0)
    return error.status === STALE
  }

  /** A VM's policy that the proxy refuses must not keep the others' from being enforced: that VM has no way out, and its caller is told why. */
  #setAside (vms: readonly VmPolicy[], { at, message }: ControlRefused): boolean {
    const vm = at?.field === 'vms' ? vms[at.index ?? -1] : undefined
    if (vm === undefined) return false
    this.#options.log.error({ instanceId: vm.id, reason: message }, 'the egress proxy does not take the policy of a VM, which has no way out now')
    this.#refused.set(vm.id, message)
    return true
  }
}
