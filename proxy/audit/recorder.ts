// Entries that the parent itself makes, about connections and queries that it refuses before a worker sees them.
import type { ReasonCode } from '../contract/reasons.ts'
import type { Counters } from '../log/counters.ts'
import { auditLine, type AuditRecord } from './line.ts'
import { countRecord } from './log.ts'
import type { AuditStore } from './store.ts'

export class Recorder {
  readonly #store: AuditStore
  readonly #counters: Counters

  constructor (store: AuditStore, counters: Counters) {
    this.#store = store
    this.#counters = counters
  }

  record (record: AuditRecord): void {
    countRecord(record, this.#counters)
    this.#store.add(record.vm, auditLine(record))
  }

  /** Counts a refusal that is too frequent for a line of its own. */
  count (reason: ReasonCode): void {
    this.#counters.countRefusal(reason)
  }
}
