// Reads and writes the rows of the builders of one host.
import type { Knex } from 'knex'
import { pageOf, rowsAlike, whereIs, whereTags, type RowOrder } from '../../../core/db/page.ts'
import { inTransaction, isDuplicate } from '../../../core/db/transaction.ts'
import type { Found, WholePage } from '../../../core/http/list.ts'
import type { BuilderRecord, BuilderStatus } from './record.ts'

const BUILDERS = 'builds_builders'
/** A host has few builders, since each has a disk. So no index has their names. */
const ORDER = { columns: { created_at: 'created_at', name: 'name' }, nullable: ['name'], id: 'id', tie: 'id' } as const satisfies RowOrder<string>

export interface BuilderFilter { readonly name?: string, readonly status?: BuilderStatus, readonly tags?: Readonly<Record<string, string>> }

interface Row {
  id: string
  host_id: string
  status: BuilderRecord['status']
  name: string | null
  disk_size_gb: number
  volume_id: string
  tags: string
  created_at: number | string
  last_used_at: number | string | null
}

export class BuilderRepository {
  readonly #database: Knex
  readonly #hostId: string

  constructor (database: Knex, hostId: string) {
    this.#database = database
    this.#hostId = hostId
  }

  /** False when the id is taken. */
  async insert ({ id, status, name, diskSizeGb, volumeId, tags, createdAt, lastUsedAt }: BuilderRecord): Promise<boolean> {
    try {
      await this.#change(async (trx) => {
        await trx<Row>(BUILDERS).insert({
          id, host_id: this.#hostId, status, name, disk_size_gb: diskSizeGb, volume_id: volumeId, tags: JSON.stringify(tags), created_at: createdAt, last_used_at: lastUsedAt
        })
      })
      return true
    } catch (error) {
      if (isDuplicate(error)) return false
      throw error
    }
  }

  /** Oldest first, also those that are being made. */
  async all (): Promise<BuilderRecord[]> {
    const rows: Row[] = await this.#builders().orderBy([{ column: 'created_at' }, { column: 'id' }])
    return rows.map(recordOf)
  }

  /** Without those that are still being made. */
  async page ({ name, status, tags }: BuilderFilter, page: WholePage<keyof typeof ORDER.columns>): Promise<Found<BuilderRecord>> {
    const found = await pageOf<Row, keyof typeof ORDER.columns>(() => this.#made(), (query) => {
      if (name !== undefined) whereIs(query, 'name', name)
      if (status !== undefined) query.where({ status })
      whereTags(query, 'tags', tags)
      return { isNarrow: name !== undefined }
    }, ORDER, page)
    return { ...found, items: found.items.map(recordOf) }
  }

  /** The builders that a text may mean, without those that are still being made. */
  async alike (text: string): Promise<BuilderRecord[]> {
    return (await rowsAlike<Row>(() => this.#made(), text, { id: 'id' })).map(recordOf)
  }

  /** A builder that is not still being made. */
  async find (id: string): Promise<BuilderRecord | undefined> {
    const row: Row | undefined = await this.#made().where({ id }).first()
    // MySQL ignores case when it compares texts.
    return row === undefined || row.id !== id ? undefined : recordOf(row)
  }

  /** The builder that has this disk, also one that is still being made, as it is once each change has ended that was begun before, such as one whose connection was lost. */
  async settled (id: string, volumeId: string): Promise<BuilderRecord | undefined> {
    return await inTransaction(this.#database, async (trx) => {
      const row: Row | undefined = await this.#builders(trx).where({ id, volume_id: volumeId }).forUpdate().first()
      return row === undefined ? undefined : recordOf(row)
    })
  }

  async setStatus (id: string, status: BuilderRecord['status']): Promise<void> {
    await this.#change(async (trx) => { await this.#builders(trx).where({ id }).update({ status }) })
  }

  /** A builder is ready with this disk. */
  async setReady (id: string, volumeId: string): Promise<void> {
    await this.#change(async (trx) => {
      const changed = await this.#builders(trx).where({ id }).update({ status: 'ready', volume_id: volumeId })
      if (changed !== 1) throw new Error(`the row of builder ${id} is gone`)
    })
  }

  async setUsed (id: string, now: number): Promise<void> {
    await this.#builders().where({ id }).update({ last_used_at: now })
  }

  async remove (id: string): Promise<void> {
    await this.#change(async (trx) => { await this.#builders(trx).where({ id }).delete() })
  }

  /** A transaction, although it is one write: when its answer is lost, either the row is locked until it is done, or it is never done. */
  async #change (work: (trx: Knex.Transaction) => Promise<void>): Promise<void> {
    await inTransaction(this.#database, work)
  }

  #made (): Knex.QueryBuilder<Row, Row[]> {
    return this.#builders().whereNot({ status: 'creating' })
  }

  #builders (db: Knex = this.#database): Knex.QueryBuilder<Row, Row[]> {
    return db<Row>(BUILDERS).where({ host_id: this.#hostId })
  }
}

function recordOf (row: Row): BuilderRecord {
  const tags: Record<string, string> = JSON.parse(row.tags)
  return {
    id: row.id,
    status: row.status,
    name: row.name,
    diskSizeGb: row.disk_size_gb,
    volumeId: row.volume_id,
    tags,
    createdAt: Number(row.created_at),
    lastUsedAt: row.last_used_at === null ? null : Number(row.last_used_at)
  }
}
