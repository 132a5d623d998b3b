// One request of a guest from its arrival to its line in the audit log, whatever protocol carries it.
import type { Duplex } from 'node:stream'
import type { AuditEntry } from '../contract/control.ts'
import { BadAnswer } from '../gate/bad-answer.ts'
import type { ReasonCode } from '../contract/reasons.ts'
import { NO_RULES, type CompiledPolicy, type HostRules } from '../gate/host-rules.ts'
import { ExchangeTrace } from '../audit/exchange-trace.ts'
import type { Services } from './services.ts'

export interface ExchangeSubject {
  readonly protocol: AuditEntry['protocol']
  readonly host: string
  readonly port: number
  readonly secure: boolean
  readonly method: string
  /** as the guest wrote it, query included */
  readonly path: string
}

/** The one that carries an exchange, in the way of its protocol. An object rather than a function in a field: see README.md, "Speed". */
export interface ExchangeOwner {
  abort (code: ReasonCode): void
}

/** What an exchange needs of the VM that it belongs to. */
export interface ExchangeVm {
  readonly id: string
  readonly policy: CompiledPolicy
  /** of this VM, all that are under way */
  readonly exchanges: Set<Exchange>
  /** Counts an exception that belongs to this VM's traffic, and says so in the log. */
  fault (error: unknown): void
}

/** A policy, and what of it holds for one request. */
interface AppliedPolicy {
  readonly policy: CompiledPolicy
  readonly rules: HostRules
}

/** Counts, remembers what was injected, and writes the audit line exactly once. */
export class Exchange {
  readonly vm: ExchangeVm
  readonly subject: ExchangeSubject
  readonly #services: Services
  readonly startedMs = performance.now()
  readonly trace: ExchangeTrace | undefined
  bytesIn = 0
  bytesOut = 0
  status: number | undefined
  /** bytes of a body whose length the guest announced, as long as they may be slow */
  expectedBytes = 0
  /** the guest's connection, for faults that Node reports for a connection rather than for a request */
  socket: Duplex | undefined
  progressedMs = this.startedMs
  progress = 0
  #finished = false
  #read: AppliedPolicy | undefined
  #written: AppliedPolicy | undefined
  /** what carries it; absent before it begins and after it has ended */
  owner: ExchangeOwner | undefined

  constructor (vm: ExchangeVm, subject: ExchangeSubject, services: Services) {
    this.vm = vm
    this.subject = subject
    this.#services = services
    const { tracing } = vm.policy
    this.trace = tracing === undefined ? undefined : new ExchangeTrace(tracing, this.startedMs)
    vm.exchanges.add(this)
  }

  /** requests of the same VM that are under way */
  get requests (): number {
    return this.vm.exchanges.size
  }

  get finished (): boolean {
    return this.#finished
  }

  /**
   * What the policy of this moment sets. It is for a header that is written in this turn of the event loop: no policy that was replaced before can be in it.
   * Without a value for a credential it ends both sides: `undefined`.
   */
  readPolicy (): HostRules | undefined {
    const { policy } = this.vm
    const rules = this.subject.secure ? policy.rulesFor(this.subject.host) : NO_RULES
    if (rules.unavailable) {
      this.abort('secret_unavailable')
      return undefined
    }
    this.#read = { policy, rules }
    return rules
  }

  /** The header that the policy was read for is written, to a connection or session of an origin. */
  headerWritten (way: object): void {
    this.#written = this.#read
    this.trace?.sent(way)
  }

  /** The origin's answer has begun. */
  answered (status: number): void {
    this.status = status
    this.trace?.answered()
  }

  /** What was put into the request that went out. */
  get rules (): HostRules {
    return this.#written?.rules ?? NO_RULES
  }

  /** Ends both sides at once. It never throws: who ends many exchanges ends them all. */
  abort (code: ReasonCode): void {
    try {
      if (this.owner === undefined) this.finish(code)
      else this.owner.abort(code)
    } catch (error) {
      this.vm.fault(error)
      this.finish(code)
    }
  }

  /** Ends both sides because of an exception in one of their callbacks. A bad answer is its origin's fault, everything else one of this program. */
  fault (error: unknown): void {
    if (error instanceof BadAnswer) return this.abort('upstream_failed')
    this.vm.fault(error)
    this.abort('proxy_fault')
  }

  /** Runs a part of this exchange: what it throws ends the exchange, and nothing else. */
  run (work: () => void): void {
    try {
      work()
    } catch (error) {
      this.fault(error)
    }
  }

  /** A listener that is a part of this exchange. Whatever calls back from outside for a request has its listener from here. */
  listener<A extends unknown[]> (work: (...args: A) => void): (...args: A) => void {
    return (...args) => {
      try {
        work(...args)
      } catch (error) {
        this.fault(error)
      }
    }
  }

  /** Writes the audit line; everything after the first call is ignored. */
  finish (reason?: ReasonCode): void {
    if (this.#finished) return
    this.#finished = true
    this.vm.exchanges.delete(this)
    this.owner = undefined
    this.socket = undefined
    const { protocol, host, port, method, path } = this.subject
    this.#services.audit.record({
      vm: this.vm.id,
      revision: (this.#written?.policy ?? this.vm.policy).revision,
      protocol,
      host,
      port,
      method,
      path,
      status: this.status,
      injected: this.rules.credentials,
      reason,
      bytesIn: this.bytesIn,
      bytesOut: this.bytesOut,
      durationMs: performance.now() - this.startedMs,
      trace: this.trace?.steps
    })
  }
}
