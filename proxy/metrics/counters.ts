// The figures that the hot path counts: plain numbers, which `metrics.ts` turns into Prometheus text when somebody asks.
import type { AuditEntry } from '../contract.ts'
import type { ReasonCode } from '../gate/reasons.ts'

/** What has happened since the program started. */
export class Counters {
  readonly requests = new Map<AuditEntry['protocol'], number>()
  readonly refusals = new Map<ReasonCode, number>()
  bytesIn = 0
  bytesOut = 0
  injected = 0
  echoesReplaced = 0
  certificates = 0
  originConnections = 0
  dnsQueries = 0

  countRequest (protocol: AuditEntry['protocol']): void {
    this.requests.set(protocol, (this.requests.get(protocol) ?? 0) + 1)
  }

  countRefusal (code: ReasonCode): void {
    this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1)
  }
}
