// The counters of the hot path: plain numbers, which `metrics.ts` turns into Prometheus text on request.
import type { AuditEntry } from '../contract/control.ts'
import type { ReasonCode } from '../contract/reasons.ts'

/** Counted values in the form in which they are sent between processes. */
export interface CounterValues {
  readonly requests: readonly (readonly [AuditEntry['protocol'], number])[]
  readonly refusals: readonly (readonly [ReasonCode, number])[]
  readonly numbers: readonly number[]
}

const NUMBERS = ['bytesIn', 'bytesOut', 'injected', 'exchangeFaults', 'echoesReplaced', 'certificates', 'originConnections', 'dnsQueries', 'auditLost'] as const

/** What has happened since the program started. */
export class Counters {
  readonly requests = new Map<AuditEntry['protocol'], number>()
  readonly refusals = new Map<ReasonCode, number>()
  bytesIn = 0
  bytesOut = 0
  injected = 0
  /** exceptions that left a callback of a request; each is a bug of this program */
  exchangeFaults = 0
  echoesReplaced = 0
  certificates = 0
  originConnections = 0
  dnsQueries = 0
  /** audit lines that were lost for want of room */
  auditLost = 0

  countRequest (protocol: AuditEntry['protocol']): void {
    this.requests.set(protocol, (this.requests.get(protocol) ?? 0) + 1)
  }

  countRefusal (code: ReasonCode): void {
    this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1)
  }

  /** Returns all counts and sets them to 0. */
  take (): CounterValues {
    const values = { requests: [...this.requests], refusals: [...this.refusals], numbers: NUMBERS.map(name => this[name]) }
    this.requests.clear()
    this.refusals.clear()
    for (const name of NUMBERS) this[name] = 0
    return values
  }

  add ({ requests, refusals, numbers }: CounterValues): void {
    for (const [protocol, count] of requests) this.requests.set(protocol, (this.requests.get(protocol) ?? 0) + count)
    for (const [code, count] of refusals) this.refusals.set(code, (this.refusals.get(code) ?? 0) + count)
    for (const [index, name] of NUMBERS.entries()) this[name] += numbers[index] ?? 0
  }
}
