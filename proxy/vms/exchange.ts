// One request of a guest from its arrival to its line in the audit log, whatever protocol carries it.
import type { Duplex } from 'node:stream'
import type { AuditEntry } from '../contract.ts'
import type { ReasonCode } from '../gate/reasons.ts'
import type { CompiledPolicy, HostRules } from '../policy/host-rules.ts'
import type { Services } from './services.ts'
import type { Vm } from './vm.ts'

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

/** Counts, remembers what was injected, and writes the audit line exactly once. */
export class Exchange {
  readonly vm: Vm
  readonly subject: ExchangeSubject
  readonly #services: Services
  readonly startedMs = performance.now()
  bytesIn = 0
  bytesOut = 0
  status: number | undefined
  /** what was put into the request that went out; set when its header is written */
  injectedBy: HostRules | undefined
  /** the policy that the header was written with */
  policy: CompiledPolicy | undefined
  /** bytes of a body whose length the guest announced, as long as they may be slow */
  expectedBytes = 0
  /** the guest's connection, for faults that Node reports for a connection rather than for a request */
  socket: Duplex | undefined
  progressedMs = this.startedMs
  progress = 0
  #finished = false
  /** what carries it; absent before it begins and after it has ended */
  owner: ExchangeOwner | undefined

  constructor (vm: Vm, subject: ExchangeSubject, services: Services) {
    this.vm = vm
    this.subject = subject
    this.#services = services
    vm.exchanges.add(this)
  }

  get finished (): boolean {
    return this.#finished
  }

  /** Ends both sides at once. */
  abort (code: ReasonCode): void {
    if (this.owner === undefined) this.finish(code)
    else this.owner.abort(code)
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
      revision: (this.policy ?? this.vm.policy).revision,
      protocol,
      host,
      port,
      method,
      path,
      status: this.status,
      injected: this.injectedBy?.credentials ?? [],
      reason,
      bytesIn: this.bytesIn,
      bytesOut: this.bytesOut,
      durationMs: performance.now() - this.startedMs
    })
  }
}
