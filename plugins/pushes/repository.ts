// Reads and writes the rows of the pushes of one host. The only file of this plugin that uses knex.
import type { Knex } from 'knex'
import { createChanges, type Change, type Changes, type Journal, type Note, type ResourceState } from '../../core/db/changes.ts'
import { pageOf, rowsAlike, type RowOrder } from '../../core/db/page.ts'
import type { Found, WholePage } from '../../core/http/list.ts'
import type { ImageWeight, NewPush, PushRecord, PushStatus } from './record.ts'

interface Row {
  number: number | string
  id: string
  host_id: string
  status: PushStatus
  image: string
  digest: string
  origins: string
  target: string
  destination: string
  insecure: number
  is_lent: number
  key_id: string | null
  layers: number | null
  bytes: number | string | null
  error: string | null
  created_at: number | string
  completed_at: number | string | null
}

const TABLE = 'pushes_pushes'
const ORDER = { columns: { created_at: 'number', status: 'status' }, id: 'id', tie: 'number' } as const satisfies RowOrder<string>
const UNFINISHED = ['queued', 'pushing'] as const
/** rows removed at a time; there are more only after `keepFinished` was made smaller */
const MOST_FORGOTTEN = 500
const FINISHED = ['pushed', 'failed'] as const

export class PushRepository {
  readonly #database: Knex
  readonly #hostId: string
  readonly #changes: Changes

  constructor (database: Knex, hostId: string, journal?: Journal) {
    this.#database = database
    this.#hostId = hostId
    this.#changes = createChanges(database, journal, { resource: 'push', scope: 'push:read', list: async () => (await this.all()).map(stateOf) })
  }

  /** Newest first. */
  async all (): Promise<PushRecord[]> {
    const rows: Row[] = await this.#rows().orderBy('number', 'desc')
    return rows.map(recordOf)
  }

  async page ({ status }: { readonly status?: PushStatus }, page: WholePage<keyof typeof ORDER.columns>): Promise<Found<PushRecord>> {
    const found = await pageOf<Row, keyof typeof ORDER.columns>(() => this.#rows(), (query) => {
      if (status !== undefined) query.where({ status })
      return { isNarrow: false }
    }, ORDER, page)
    return { ...found, items: found.items.map(recordOf) }
  }

  /** The pushes that a text may mean. */
  async alike (text: string): Promise<PushRecord[]> {
    return (await rowsAlike<Row>(() => this.#rows(), text, { id: 'id' })).map(recordOf)
  }

  async find (id: string): Promise<PushRecord | undefined> {
    const row: Row | undefined = await this.#rows().where({ id }).first()
    // MySQL ignores case when it compares texts.
    return row === undefined || row.id !== id ? undefined : recordOf(row)
  }

  /** Stores a new push, which waits for its turn. */
  async insert (push: NewPush): Promise<PushRecord> {
    const record: PushRecord = { ...push, status: 'queued', layers: null, bytes: null, error: null, completedAt: null }
    await this.#changes.commit(async (trx, note) => {
      await trx<Row>(TABLE).insert(rowOf(record, this.#hostId))
      note({ action: 'created', ...stateOf(record) })
    })
    return record
  }

  /** Removes a push that its caller knows nothing of. */
  async remove (id: string): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      // Waits for a commit of this row whose answer was lost and which is still to be done.
      const row: Row | undefined = await this.#rows(trx).where({ id }).forUpdate().first()
      if (row === undefined) return
      await this.#rows(trx).where({ id }).delete()
      note({ action: 'deleted', ...stateOf(recordOf(row)) })
    })
  }

  async begin (id: string): Promise<void> {
    await this.#changes.commit(async (trx, note) => { await this.#update(trx, note, (rows) => rows.where({ id, status: 'queued' }), { status: 'pushing' }) })
  }

  async weigh (id: string, { layers, bytes }: ImageWeight): Promise<void> {
    await this.#changes.commit(async (trx, note) => { await this.#update(trx, note, (rows) => rows.where({ id }), { layers, bytes }) })
  }

  /** @param error why it failed; absent when it succeeded */
  async finish (id: string, now: number, error?: string): Promise<void> {
    const change = { status: error === undefined ? 'pushed' as const : 'failed' as const, error: error ?? null, completed_at: now }
    await this.#changes.commit(async (trx, note) => { await this.#update(trx, note, (rows) => rows.where({ id }).whereIn('status', UNFINISHED), change) })
  }

  /** Unfinished pushes of an earlier server: those with credentials fail; the others are returned and wait again, oldest first. */
  async takeUp (error: string, now: number): Promise<PushRecord[]> {
    await this.#changes.commit(async (trx, note) => {
      await this.#update(trx, note, (rows) => rows.whereIn('status', UNFINISHED).where({ is_lent: 1 }), { status: 'failed', error, completed_at: now })
      await this.#update(trx, note, (rows) => rows.where({ status: 'pushing' }), { status: 'queued' })
    })
    const rows: Row[] = await this.#rows().where({ status: 'queued' }).orderBy('number')
    return rows.map(recordOf)
  }

  /** Removes all finished pushes but the newest. */
  async forget (keep: number): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      const rows: Row[] = await this.#rows(trx).whereIn('status', FINISHED).orderBy('number', 'desc').offset(keep).limit(MOST_FORGOTTEN)
      for (const row of rows) note({ action: 'deleted', ...stateOf(recordOf(row)) })
      await this.#rows(trx).whereIn('number', rows.map((row) => row.number)).delete()
    })
  }

  /** Changes rows, and writes an event for each. */
  async #update (trx: Knex, note: Note, which: (rows: Knex.QueryBuilder<Row, Row[]>) => Knex.QueryBuilder<Row, Row[]>, change: Partial<Row>): Promise<void> {
    const rows: Row[] = await which(this.#rows(trx)).orderBy('number').forUpdate()
    if (rows.length === 0) return
    await this.#rows(trx).whereIn('number', rows.map((row) => row.number)).update(change)
    for (const row of rows) note(updated({ ...row, ...change }))
  }

  #rows (db: Knex = this.#database): Knex.QueryBuilder<Row, Row[]> {
    return db<Row>(TABLE).where({ host_id: this.#hostId })
  }
}

function stateOf ({ id, status, image, target, layers, bytes, error }: PushRecord): ResourceState {
  return { id, name: null, status, tags: {}, details: { image, target, layers, bytes, error } }
}

function updated (row: Row): Change {
  return { action: 'updated', ...stateOf(recordOf(row)) }
}

function rowOf (record: PushRecord, hostId: string): Omit<Row, 'number'> {
  return {
    id: record.id,
    host_id: hostId,
    status: record.status,
    image: record.image,
    digest: record.digest,
    origins: JSON.stringify(record.origins),
    target: record.target,
    destination: record.destination,
    insecure: record.insecure ? 1 : 0,
    is_lent: record.isLent ? 1 : 0,
    key_id: record.keyId,
    layers: record.layers,
    bytes: record.bytes,
    error: record.error,
    created_at: record.createdAt,
    completed_at: record.completedAt
  }
}

function recordOf (row: Row): PushRecord {
  const origins: string[] = JSON.parse(row.origins)
  return {
    id: row.id,
    status: row.status,
    image: row.image,
    digest: row.digest,
    origins,
    target: row.target,
    destination: row.destination,
    insecure: row.insecure !== 0,
    isLent: row.is_lent !== 0,
    keyId: row.key_id,
    layers: row.layers,
    bytes: row.bytes === null ? null : Number(row.bytes),
    error: row.error,
    createdAt: Number(row.created_at),
    completedAt: row.completed_at === null ? null : Number(row.completed_at)
  }
}
