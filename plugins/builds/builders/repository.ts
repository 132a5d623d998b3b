// Reads and writes the rows of the builders of one host.
import type { Knex } from 'knex'
import { isDuplicate } from '../../../core/db/transaction.ts'
import type { BuilderRecord } from './record.ts'

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
      await this.#database<Row>('builds_builders').insert({
        id, host_id: this.#hostId, status, name, disk_size_gb: diskSizeGb, volume_id: volumeId, tags: JSON.stringify(tags), created_at: createdAt, last_used_at: lastUsedAt
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

  /** One that is not just being made. */
  async find (id: string): Promise<BuilderRecord | undefined> {
    const row: Row | undefined = await this.#builders().where({ id }).whereNot({ status: 'creating' }).first()
    // MySQL takes texts that differ in case for the same.
    return row === undefined || row.id !== id ? undefined : recordOf(row)
  }

  async setStatus (id: string, status: BuilderRecord['status']): Promise<void> {
    await this.#builders().where({ id }).update({ status })
  }

  /** A builder is ready with this disk. */
  async setReady (id: string, volumeId: string): Promise<void> {
    const changed = await this.#builders().where({ id }).update({ status: 'ready', volume_id: volumeId })
    if (changed !== 1) throw new Error(`the row of builder ${id} is gone`)
  }

  async setUsed (id: string, now: number): Promise<void> {
    await this.#builders().where({ id }).update({ last_used_at: now })
  }

  async remove (id: string): Promise<void> {
    await this.#builders().where({ id }).delete()
  }

  #builders (): Knex.QueryBuilder<Row, Row[]> {
    return this.#database<Row>('builds_builders').where({ host_id: this.#hostId })
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
