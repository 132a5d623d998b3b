// The service `journal`: the changes on this host, in the order of the commits, kept for a limited time.
import type { Knex } from 'knex'
import type { Change, Journal, ResourceKind, ResourceState } from '../../../core/db/changes.ts'
import { isDatabaseAway } from '../../../core/db/deadline.ts'
import { InvalidRequest } from '../../../core/errors/common.ts'
import { believableClock, hostClocks, type Clocks } from '../../../core/steady-clock.ts'
import { EventsExpired } from '../errors.ts'
import { Bell } from './bell.ts'
import { idAt, type StoredEvent } from './event.ts'
import type { JournalRepository } from './repository.ts'

const PAGE = 100
const SETTLE_PAUSE_MS = 1000

/** A transaction whose events may still be committed. */
interface OpenBatch { readonly first: number }

export interface Window { readonly oldest: number, readonly newest: number }

export type ProgressListener = (event: StoredEvent) => void

export class EventJournal implements Journal {
  readonly #repository: JournalRepository
  readonly #now: () => number
  readonly #isBelievable: () => boolean
  readonly #kinds = new Map<string, ResourceKind>()
  readonly #open = new Set<OpenBatch>()
  readonly #bell = new Bell()
  readonly #closing = new AbortController()
  readonly #pages = new Map<string, Promise<readonly StoredEvent[]>>()
  readonly #listeners = new Set<ProgressListener>()
  /** the highest id that was assigned */
  #last = 0
  /** no more events with an id up to this one will come */
  #head = 0
  /** that of the beginning */
  #firstHead = 0
  #passed = 0
  /** events since the last check of the limits */
  written = 0

  constructor (repository: JournalRepository, clocks: Clocks = hostClocks) {
    this.#repository = repository
    this.#now = () => clocks.now()
    this.#isBelievable = believableClock(clocks)
  }

  async open (): Promise<void> {
    const now = idAt(this.#now())
    const { passed, hadHole } = await this.#repository.begin(now)
    this.#passed = passed
    const youngest = await this.#youngest(Number.MAX_SAFE_INTEGER)
    this.#last = Math.max(now, youngest)
    // And not the time: readers go there and store it. The next server would assign lower ids if the clock of this one was ahead.
    this.#head = youngest
    // After a hole every place of an earlier server lies before it, whatever the clock of that one said.
    this.#firstHead = hadHole ? passed - 1 : youngest
  }

  close (): void {
    this.#closing.abort()
    this.#bell.ring()
  }

  know (kind: ResourceKind): void {
    this.#kinds.set(kind.resource, kind)
  }

  kinds (): readonly ResourceKind[] {
    return [...this.#kinds.values()]
  }

  async write (trx: Knex.Transaction, { resource, scope }: ResourceKind, changes: readonly Change[]): Promise<void> {
    const events = changes.map(({ action, ...state }): StoredEvent => ({ id: this.#next(), resource, action, scope, state }))
    const [first] = events
    if (first === undefined) return
    const batch = { first: first.id }
    this.#open.add(batch)
    trx.executionPromise.then(() => { this.#end(batch) }, (error: unknown) => {
      // Whether the commit was done, or still will be, is unknown.
      if (isDatabaseAway(error)) void this.#settle(batch)
      else this.#end(batch)
    })
    this.written += events.length
    await this.#repository.insert(trx, events)
  }

  progress ({ resource, scope }: ResourceKind, state: ResourceState): void {
    const event: StoredEvent = { id: idAt(this.#now()), resource, action: 'progress', scope, state }
    for (const listener of [...this.#listeners]) listener(event)
  }

  /** Returns the unsubscriber. */
  onProgress (listener: ProgressListener): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /** The range of ids from which a client can continue. */
  async window (): Promise<Window> {
    return { oldest: this.#passed, newest: await this.#youngest(this.#head) }
  }

  /**
   * The position that a client names. An unknown one was assigned by a database that has been restored from a backup since.
   * @throws events_expired, invalid_request
   */
  async resume (after: string): Promise<number> {
    if (!/^\d{1,16}$/.test(after)) throw InvalidRequest('Last-Event-ID: must be the id of an event')
    const id = Number(after)
    if (id === this.#passed || (id > this.#passed && await this.#repository.has(id))) return id
    throw await this.expired(after)
  }

  /** Where a reader goes on whose place was stored by an earlier server: that may have been an id that no event has had, from a clock that was ahead, and new events may have lower ones. */
  resumed (place: number): number {
    return Math.min(place, this.#firstHead)
  }

  async expired (after: string): Promise<Error> {
    const { oldest, newest } = await this.window()
    return EventsExpired(after, oldest, newest)
  }

  /** The next events, oldest first; `undefined` when some of them were removed. Concurrent callers with the same position share one query. */
  async after (id: number): Promise<readonly StoredEvent[] | undefined> {
    if (id >= this.#head) return []
    const key = `${id} ${this.#head}`
    let page = this.#pages.get(key)
    if (page === undefined) {
      page = this.#repository.between(id, this.#head, PAGE).finally(() => { this.#pages.delete(key) })
      this.#pages.set(key, page)
    }
    const events = await page
    return id < this.#passed ? undefined : events
  }

  /** No more events with an id up to this one will come. Read it before the events, and wait for more than it: ids have gaps. */
  head (): number {
    return this.#head
  }

  /** Resolves once there may be events after this id, and in any case after `timeoutMs` or on abort. */
  async wait (id: number, timeoutMs: number, signal: AbortSignal): Promise<void> {
    if (id < this.#head || this.#closing.signal.aborted) return
    await this.#bell.wait(timeoutMs, signal)
  }

  /** Wakes all waiting readers. */
  wake (): void {
    this.#bell.ring()
  }

  /** Removes events that are too old or too many. A clock that was set makes none too old for an hour. */
  async trim (keep: number, maxAgeMs: number, most = 1000): Promise<void> {
    this.written = 0
    const old = this.#isBelievable() ? idAt(this.#now() - maxAgeMs) : 0
    // What has passed may be there still, after a hole.
    const until = Math.max(await this.#repository.surplus(keep) ?? 0, old, this.#passed)
    // In small steps, so that requests get their turn in between.
    while (!this.#closing.signal.aborted) {
      const isDone = await this.#repository.remove(Math.min(until, this.#head), most, (passed) => { this.#passed = Math.max(this.#passed, passed) })
      if (isDone) return
    }
  }

  /** The id of the youngest event up to `until` that has not passed, else of what has. */
  async #youngest (until: number): Promise<number> {
    return Math.max(await this.#repository.youngest(until) ?? 0, this.#passed)
  }

  #next (): number {
    this.#last = Math.max(this.#last + 1, idAt(this.#now()))
    return this.#last
  }

  #end (batch: OpenBatch): void {
    this.#open.delete(batch)
    const head = Math.min(this.#last, ...[...this.#open].map(({ first }) => first - 1))
    if (head === this.#head) return
    this.#head = head
    this.#bell.ring()
  }

  async #settle (batch: OpenBatch): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      try {
        await this.#repository.settle()
        break
      } catch {
        // The database is still away.
        await new Promise<void>((resolve) => { setTimeout(resolve, SETTLE_PAUSE_MS).unref() })
      }
    }
    this.#end(batch)
  }
}
