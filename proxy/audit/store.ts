// The log of requests on disk: a part for each VM, so that no VM pushes out the entries of another.
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../log/log.ts'
import { readEntries, type AuditPage, type AuditQuery } from './read.ts'
import { VmLog } from './vm-log.ts'

export interface StoreOptions {
  /** the folder of the log, with one folder for each VM */
  readonly folder: string
  /** most bytes of one VM */
  readonly vmBytes: number
  /** most bytes of all VMs together */
  readonly totalBytes: number
}

/** A VM's part is in several files; the oldest is removed when there is no more room. */
const FILES_PER_SHARE = 4
const SMALLEST_SEGMENT_BYTES = 16 * 1024
/** The most bytes that may wait for the disk; above that, `room` does not resolve. */
const MOST_WAITING_BYTES = 4 * 1024 * 1024
const RETRY_MS = 1_000
/** VMs that are in no policy any more and whose entries are kept */
const MOST_PAST = 4096

export class AuditStore {
  readonly #options: StoreOptions
  readonly #log: Log
  /** by folder name; the log that was not written to for longest comes first */
  readonly #logs = new Map<string, VmLog>()
  readonly #dirty = new Set<VmLog>()
  readonly #names = new Map<string, string>()
  #present = new Set<string>()
  #bytes = 0
  #waiting = 0
  #isFailing = false
  #writing: Promise<void> | undefined
  #relieved: (() => void)[] = []
  /** entries that made room for later ones of their own VM */
  dropped = 0

  constructor (options: StoreOptions, log: Log) {
    this.#options = options
    this.#log = log
    mkdirSync(options.folder, { recursive: true, mode: 0o750 })
    for (const name of readdirSync(options.folder)) this.#logs.set(name, VmLog.open(join(options.folder, name)))
    for (const log of this.#logs.values()) this.#bytes += log.bytes
  }

  /** on disk, of all VMs */
  get bytes (): number {
    return this.#bytes
  }

  /** Sets which VMs have a policy. The entries of other VMs are kept as long as there are not too many such VMs. */
  keep (vms: Iterable<string>): void {
    this.#present = new Set([...vms].map(folderName))
  }

  /** The same as `keep`, given only what changed. */
  keepChanged (vms: Iterable<string>, gone: Iterable<string>): void {
    for (const vm of gone) this.#present.delete(folderName(vm))
    for (const vm of vms) this.#present.add(folderName(vm))
  }

  /** Takes a line of JSON that ends with a line feed. */
  add (vm: string, line: string): void {
    const name = this.#nameOf(vm)
    const log = this.#logs.get(name) ?? new VmLog(join(this.#options.folder, name))
    this.#logs.delete(name)
    this.#logs.set(name, log)
    log.add(line)
    this.#waiting += line.length
    this.#dirty.add(log)
    this.#writing ??= this.#write().finally(() => { this.#writing = undefined })
  }

  /** Resolves when there is room for more: at once, unless the disk is slow or takes nothing. */
  async room (): Promise<void> {
    if (this.#waiting > MOST_WAITING_BYTES) await new Promise<void>(resolve => { this.#relieved.push(resolve) })
  }

  /** Resolves when the added lines are on disk, or cannot be written now. */
  async flush (): Promise<void> {
    while (this.#writing !== undefined && !this.#isFailing) await Promise.race([this.#writing, sleep(RETRY_MS)])
  }

  async read (query: AuditQuery): Promise<AuditPage> {
    await this.flush()
    return await readEntries(this.#logs.get(folderName(query.vm))?.segments ?? [], query)
  }

  async #write (): Promise<void> {
    for (const log of this.#dirty) {
      this.#dirty.delete(log)
      await this.#writeOne(log)
      if (this.#waiting <= MOST_WAITING_BYTES) for (const resolve of this.#relieved.splice(0)) resolve()
    }
  }

  async #writeOne (log: VmLog): Promise<void> {
    try {
      await this.#writeCounted(log)
      if (this.#isFailing) this.#log.warn('requests are recorded again')
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) this.#log.error('requests cannot be recorded', error)
      this.#isFailing = true
      this.#dirty.add(log)
      await sleep(RETRY_MS)
    }
  }

  async #writeCounted (log: VmLog): Promise<void> {
    const before = { bytes: log.bytes, written: log.writtenBytes }
    try {
      await log.write(this.#segmentBytes())
    } finally {
      this.#bytes += log.bytes - before.bytes
      this.#waiting -= log.writtenBytes - before.written
      this.#makeRoom(log)
    }
  }

  /** Cached: a digest for each line would be a sixth of this process's work for a line. */
  #nameOf (vm: string): string {
    const known = this.#names.get(vm)
    if (known !== undefined) return known
    if (this.#names.size >= MOST_PAST) this.#names.clear()
    const name = folderName(vm)
    this.#names.set(vm, name)
    return name
  }

  /** Small enough that a VM that has its share gives up a part of it, not all. */
  #segmentBytes (): number {
    const share = Math.min(this.#options.vmBytes, this.#options.totalBytes / Math.max(1, this.#logs.size))
    return Math.max(SMALLEST_SEGMENT_BYTES, share / FILES_PER_SHARE)
  }

  /** Each VM has its own bound. When all together have too much, the VM that has most gives up its oldest entries; a VM with no more than an equal part never does. */
  #makeRoom (written: VmLog): void {
    while (written.bytes > this.#options.vmBytes && this.#drop(written));
    while (this.#bytes > this.#options.totalBytes && this.#drop(largest(this.#logs.values())));
    if (this.#logs.size > this.#present.size + MOST_PAST) this.#forgetOldest()
  }

  #drop (log: VmLog): boolean {
    const before = log.bytes
    this.dropped += log.dropOldest()
    this.#bytes += log.bytes - before
    return log.bytes < before
  }

  #forgetOldest (): void {
    for (const [name, log] of this.#logs) {
      if (this.#present.has(name) || this.#dirty.has(log)) continue
      rmSync(log.folder, { recursive: true, force: true })
      this.#logs.delete(name)
      this.#bytes -= log.bytes
      return
    }
  }
}

function largest (logs: Iterable<VmLog>): VmLog {
  return [...logs].reduce((most, log) => log.bytes > most.bytes ? log : most)
}

/** An id may contain any character, a file name may not; so the digest of the id is the name. */
function folderName (vm: string): string {
  return createHash('sha256').update(vm).digest('hex').slice(0, 32)
}
