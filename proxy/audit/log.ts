// The log of requests: one JSON object per line, written in batches, in files of bounded size and number.
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { AuditEntry } from '../contract.ts'
import type { ReasonCode } from '../gate/reasons.ts'
import type { Log } from '../log/log.ts'
import type { Counters } from '../metrics/counters.ts'
import { lastSeqOf } from './tail.ts'

export interface AuditOptions {
  readonly file: string
  readonly maxFileBytes: number
  /** files that are kept, the current one included */
  readonly files: number
}

/** An entry before it has its place in the log; `path` may still have its query. */
export type AuditRecord = Omit<AuditEntry, 'seq' | 'time' | 'reason'> & { readonly reason?: ReasonCode }

const FLUSH_MS = 100
// What waits is bytes, not objects: thousands of objects that live for a tenth of a second are what a garbage collector is slowest with.
const BUFFER_BYTES = 1024 * 1024
const FLUSH_BYTES = 256 * 1024
// More than the longest line: texts from guests are cut.
const MAX_LINE_BYTES = 32 * 1024
const MAX_TEXT = 2_048
// Room for the requests that are under way when the disk stops taking what is written.
const MAX_RESERVED_BYTES = 512 * 1024

export class AuditLog {
  readonly #options: AuditOptions
  readonly #counters: Counters
  readonly #log: Log
  #descriptor: number
  #bytes: number
  #seq: number
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES)
  #filled = 0
  #timer: NodeJS.Timeout | undefined
  #failing = false
  #lost = 0

  constructor (options: AuditOptions, counters: Counters, log: Log) {
    this.#options = options
    this.#counters = counters
    this.#log = log
    mkdirSync(dirname(options.file), { recursive: true, mode: 0o750 })
    this.#seq = Math.max(0, ...auditFiles(options.file).map(lastSeqOf))
    this.#descriptor = openSync(options.file, 'a', 0o640)
    this.#bytes = statSync(options.file).size
    // A crash may have left half a line, which must not become the beginning of the next one.
    if (this.#bytes > 0) this.#bytes += writeSync(this.#descriptor, '\n')
  }

  /** Whether what happens now can be recorded. When the disk takes nothing, requests are refused rather than forgotten. */
  get available (): boolean {
    return this.#filled < BUFFER_BYTES - MAX_RESERVED_BYTES
  }

  /** Adds one line, which is on disk within a tenth of a second. */
  record (record: AuditRecord): void {
    const counters = this.#counters
    counters.countRequest(record.protocol)
    if (record.reason !== undefined) counters.countRefusal(record.reason)
    counters.bytesIn += record.bytesIn
    counters.bytesOut += record.bytesOut
    counters.injected += record.injected.length
    if (this.#filled + MAX_LINE_BYTES > BUFFER_BYTES) this.#lost++
    else this.#filled += this.#buffer.write(line(++this.#seq, record), this.#filled)
    if (this.#filled >= FLUSH_BYTES && !this.#failing) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), FLUSH_MS)
  }

  /** Writes what is waiting. */
  flush (): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#filled === 0) return
    try {
      for (let done = 0; done < this.#filled;) done += writeSync(this.#descriptor, this.#buffer, done, this.#filled - done)
      this.#bytes += this.#filled
      this.#filled = 0
      if (this.#failing) this.#log.warn('requests are recorded again', { lost: this.#lost })
      this.#failing = false
      if (this.#bytes >= this.#options.maxFileBytes) this.#rotate()
    } catch (error) {
      if (!this.#failing) this.#log.error('requests cannot be recorded', error)
      this.#failing = true
      this.#timer ??= setTimeout(() => this.flush(), FLUSH_MS * 10)
    }
  }

  close (): void {
    this.flush()
    clearTimeout(this.#timer)
    fsyncSync(this.#descriptor)
    closeSync(this.#descriptor)
  }

  /** The full file is named by its last entry, so that readers know which ones they need. */
  #rotate (): void {
    const { file, files } = this.#options
    closeSync(this.#descriptor)
    renameSync(file, `${file}.${String(this.#seq).padStart(16, '0')}`)
    this.#descriptor = openSync(file, 'a', 0o640)
    this.#bytes = 0
    const old = auditFiles(file).slice(0, -1)
    for (const path of old.slice(0, Math.max(0, old.length - (files - 1)))) rmSync(path, { force: true })
  }
}

/** The files of a log, oldest first; the current one is the last. */
export function auditFiles (file: string): string[] {
  const folder = dirname(file)
  const prefix = `${basename(file)}.`
  const rotated = readdirSync(folder).filter(name => name.startsWith(prefix) && /^\d{16}$/.test(name.slice(prefix.length))).sort()
  return [...rotated.map(name => join(folder, name)), file]
}

function line (seq: number, record: AuditRecord): string {
  const query = record.path?.indexOf('?') ?? -1
  const entry: AuditEntry = {
    seq,
    time: new Date().toISOString(),
    vm: record.vm,
    revision: record.revision,
    protocol: record.protocol,
    host: cut(record.host),
    port: record.port,
    method: record.method,
    path: record.path === undefined ? undefined : cut(query === -1 ? record.path : record.path.slice(0, query)),
    status: record.status,
    injected: record.injected,
    reason: record.reason,
    bytesIn: record.bytesIn,
    bytesOut: record.bytesOut,
    durationMs: Math.round(record.durationMs * 100) / 100
  }
  return `${JSON.stringify(entry)}\n`
}

function cut (text: string): string {
  return text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) : text
}
