// Reads and writes the journal of one host.
import type { Knex } from 'knex'
import { hadUnjournaled } from '../../../core/db/absent-journal.ts'
import { inTransaction } from '../../../core/db/transaction.ts'
import type { ChangeAction, ResourceState } from '../../../core/db/changes.ts'
import type { StoredEvent } from './event.ts'

interface HostRow { host_id: string, passed: number | string }
interface Row {
  host_id: string
  id: number | string
  resource: string
  action: ChangeAction
  scope: string
  state: string
}

const HOSTS = 'events_hosts'
const JOURNAL = 'events_journal'

export class JournalRepository {
  readonly #database: Knex
  readonly #hostId: string

  constructor (database: Knex, hostId: string) {
    this.#database = database
    this.#hostId = hostId
  }

  /**
   * `passed`: the id of the youngest event that was removed; `first` for a new journal. When the host has had changes that were not written here, all that was written before has passed, and `hadHole` is true. That may be much, and is removed by the next `remove`s.
   */
  async begin (first: number): Promise<{ readonly passed: number, readonly hadHole: boolean }> {
    await this.#database<HostRow>(HOSTS).insert({ host_id: this.#hostId, passed: first }).onConflict('host_id').ignore()
    return await inTransaction(this.#database, async (trx) => {
      const row = await this.#lock(trx)
      const before = Number(row?.passed ?? first)
      if (!await hadUnjournaled(trx, this.#hostId)) return { passed: before, hadHole: false }
      const youngest = Math.max(await this.youngest(Number.MAX_SAFE_INTEGER, trx) ?? before, before)
      // More than the youngest: whoever has that one has missed something, too.
      const passed = Math.max(first, youngest + 1)
      await this.#pass(trx, passed)
      return { passed, hadHole: true }
    })
  }

  /**
   * Returns once no transaction with events is open any more, for example one whose connection was lost: on MySQL each has a shared lock on the host's row by the foreign key;
   * SQLite has one transaction at a time.
   */
  async settle (): Promise<void> {
    await inTransaction(this.#database, async (trx) => { await this.#lock(trx) })
  }

  async insert (trx: Knex.Transaction, events: readonly StoredEvent[]): Promise<void> {
    await trx(JOURNAL).insert(events.map(({ id, resource, action, scope, state }) => ({ host_id: this.#hostId, id, resource, action, scope, state: JSON.stringify(state) })))
  }

  /** Oldest first. */
  async between (after: number, until: number, limit: number): Promise<StoredEvent[]> {
    const rows: Row[] = await this.#events().where('id', '>', after).where('id', '<=', until).orderBy('id').limit(limit)
    return rows.map(eventOf)
  }

  async has (id: number): Promise<boolean> {
    return await this.#events().where({ id }).select('id').first() !== undefined
  }

  /** The id of the youngest event that is not younger than `until`. */
  async youngest (until: number, db: Knex = this.#database): Promise<number | undefined> {
    const row: Pick<Row, 'id'> | undefined = await this.#events(db).where('id', '<=', until).orderBy('id', 'desc').select('id').first()
    return row === undefined ? undefined : Number(row.id)
  }

  /** The id of the youngest event above the limit. */
  async surplus (keep: number): Promise<number | undefined> {
    const row: Pick<Row, 'id'> | undefined = await this.#events().orderBy('id', 'desc').select('id').offset(keep).first()
    return row === undefined ? undefined : Number(row.id)
  }

  /**
   * Removes the oldest events up to `until`, at most `most` at a time; true when there are no more.
   * @param passing called with the last id to be removed, before the removal: readers at an earlier position must know
   */
  async remove (until: number, most: number, passing: (id: number) => void): Promise<boolean> {
    const rows: Pick<Row, 'id'>[] = await this.#events().where('id', '<=', until).orderBy('id').limit(most).select('id')
    const last = rows.at(-1)
    if (last === undefined) return true
    const passed = Number(last.id)
    passing(passed)
    await inTransaction(this.#database, async (trx) => {
      await this.#pass(trx, passed)
      await this.#events(trx).where('id', '<=', passed).delete()
    })
    return rows.length < most
  }

  async #lock (trx: Knex.Transaction): Promise<HostRow | undefined> {
    return await trx<HostRow>(HOSTS).where({ host_id: this.#hostId }).forUpdate().first()
  }

  async #pass (trx: Knex.Transaction, passed: number): Promise<void> {
    // Never less: after a hole, events are removed that passed with it.
    await trx<HostRow>(HOSTS).where({ host_id: this.#hostId }).where('passed', '<', passed).update({ passed })
  }

  #events (db: Knex = this.#database): Knex.QueryBuilder<Row, Row[]> {
    return db<Row>(JOURNAL).where({ host_id: this.#hostId })
  }
}

function eventOf (row: Row): StoredEvent {
  const state: ResourceState = JSON.parse(row.state)
  return { id: Number(row.id), resource: row.resource, action: row.action, scope: row.scope, state }
}
