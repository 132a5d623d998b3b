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

/** The request that an exchange belongs to, in the code of its protocol. An object rather than a function in a field: see README.md, "Speed". */
export interface ExchangeOwner {
  abort (code: ReasonCode): void
  /** Another policy is in force: a header that was given to Node and has not left yet must not leave. */
  renew? (): void
}

/** The part of a VM that its exchanges use. */
export interface ExchangeVm {
  readonly id: string
  readonly policy: CompiledPolicy
  /** all exchanges of this VM that are under way */
  readonly exchanges: Set<Exchange>
  /** Counts an exception of this VM's traffic, and logs it. */
  fault (error: unknown): void
}

/** A policy, and its rules for one request. */
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
  /** announced length of a body, while it is checked for slowness */
  expectedBytes = 0
  /** the guest's connection, for faults that Node reports for a connection rather than for a request */
  socket: Duplex | undefined
  progressedMs = this.startedMs
  progress = 0
  #finished = false
  #read: AppliedPolicy | undefined
  #written: AppliedPolicy | undefined
  /** the request in the code of its protocol; absent before it begins and after it has ended */
  owner: ExchangeOwner | undefined

  constructor (vm: ExchangeVm, subject: ExchangeSubject, services: Services) {
    this.vm = vm
    this.subject = subject
    this.#services = services
    const { tracing } = vm.policy
    this.trace = tracing === undefined ? undefined : new ExchangeTrace(tracing, this.startedMs)
    vm.exchanges.add(this)
  }

  /** number of running requests of the same VM */
  get requests (): number {
    return this.vm.exchanges.size
  }

  get finished (): boolean {
    return this.#finished
  }

  /**
   * The headers that the current policy sets. The caller must write the header in this turn of the event loop, so that it has no value of a replaced policy.
   * When a credential has no value now, it ends both sides and returns `undefined`.
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

  /** The header with the policy's rules was written to a connection or session of an origin. */
  headerWritten (way: object): void {
    this.#written = this.#read
    this.trace?.sent(way)
  }

  /** The origin's answer has begun. */
  answered (status: number): void {
    this.status = status
    this.trace?.answered()
  }

  /** The rules that were put into the request. */
  get rules (): HostRules {
    return this.#written?.rules ?? NO_RULES
  }

  /** Ends both sides at once. Never throws, so that a caller can end many exchanges in a row. */
  abort (code: ReasonCode): void {
    try {
      if (this.owner === undefined) this.finish(code)
      else this.owner.abort(code)
    } catch (error) {
      this.vm.fault(error)
      this.finish(code)
    }
  }

  /** Another policy is in force. */
  renew (): void {
    this.run(() => this.owner?.renew?.())
  }

  /** Ends both sides because of an exception in a callback. A bad answer is its origin's fault, any other exception a bug of this program. */
  fault (error: unknown): void {
    if (error instanceof BadAnswer) return this.abort('upstream_failed')
    this.vm.fault(error)
    this.abort('proxy_fault')
  }

  /** Runs a part of this exchange: an exception ends the exchange, and nothing else. */
  run (work: () => void): void {
    try {
      work()
    } catch (error) {
      this.fault(error)
    }
  }

  /** A listener that runs as a part of this exchange. Every callback for a request must be made here. */
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
