// The log of requests as a worker writes it: lines in batches to its parent, which keeps them (`store.ts`).
import type { Counters } from '../log/counters.ts'
import { auditLine, type AuditRecord } from './line.ts'

/** Where lines go. `done` is called when all of these lines have left this process, and their memory may be used again; never when they cannot leave. */
export interface AuditSink {
  write (lines: Buffer, done: () => void): void
  /** Resolves when all lines have left. */
  close (): Promise<void>
}

const FLUSH_MS = 100
const POLL_MS = 5
// Waiting lines are kept as bytes, not objects: thousands of objects that live for a tenth of a second are what a garbage collector is slowest with.
const BUFFER_BYTES = 1024 * 1024
const FLUSH_BYTES = 256 * 1024
// More than the longest line: texts from guests are cut.
const MAX_LINE_BYTES = 32 * 1024
// Room for the lines of requests that are under way when the sink takes nothing.
const MAX_RESERVED_BYTES = 512 * 1024

export class AuditLog {
  readonly #sink: AuditSink
  readonly #counters: Counters
  /** one buffer is filled while the other is being written */
  #filling = Buffer.allocUnsafe(BUFFER_BYTES)
  #leaving = Buffer.allocUnsafe(BUFFER_BYTES)
  #filled = 0
  #isLeaving = false
  #written = 0
  #timer: NodeJS.Timeout | undefined

  constructor (sink: AuditSink, counters: Counters) {
    this.#sink = sink
    this.#counters = counters
  }

  /** Whether a new request can be recorded. When the sink takes no lines, requests are refused rather than left out of the log. */
  get available (): boolean {
    return this.#filled < BUFFER_BYTES - MAX_RESERVED_BYTES
  }

  /** bytes of all lines so far, waiting ones included */
  get bytes (): number {
    return this.#written + this.#filled
  }

  /** Adds one line, which leaves within a tenth of a second. */
  record (record: AuditRecord): void {
    countRecord(record, this.#counters)
    if (this.#filled + MAX_LINE_BYTES > BUFFER_BYTES) this.#counters.auditLost++
    else this.#filled += this.#filling.write(auditLine(record), this.#filled, 'latin1')
    if (this.#filled >= FLUSH_BYTES) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), FLUSH_MS)
  }

  /** Sends the waiting lines, unless an earlier batch has not left yet. */
  flush (): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#filled === 0 || this.#isLeaving) return
    const lines = this.#filling.subarray(0, this.#filled)
    this.#written += this.#filled
    this.#filled = 0
    this.#isLeaving = true
    ;[this.#filling, this.#leaving] = [this.#leaving, this.#filling]
    this.#sink.write(lines, () => {
      this.#isLeaving = false
      this.flush()
    })
  }

  /** Resolves when the sink has taken the last lines. */
  async close (): Promise<void> {
    while (this.#filled > 0 || this.#isLeaving) {
      this.flush()
      await new Promise(resolve => setTimeout(resolve, POLL_MS))
    }
    await this.#sink.close()
  }
}

/** Counts a recorded request. */
export function countRecord ({ protocol, reason, bytesIn, bytesOut, injected }: AuditRecord, counters: Counters): void {
  counters.countRequest(protocol)
  if (reason !== undefined) counters.countRefusal(reason)
  counters.bytesIn += bytesIn
  counters.bytesOut += bytesOut
  counters.injected += injected.length
}
