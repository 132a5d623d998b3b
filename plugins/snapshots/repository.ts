// Reads and writes the rows of the snapshots of one host.
import type { Knex } from 'knex'
import { createChanges, type ChangeAction, type Changes, type Journal, type Note, type ResourceState } from '../../core/db/changes.ts'
import { pageOf, rowsAlike, whereIs, whereTags, type RowOrder } from '../../core/db/page.ts'
import { inTransaction, isDuplicate } from '../../core/db/transaction.ts'
import type { Found, WholePage } from '../../core/http/list.ts'
import type { Compression } from '../../core/library/compressed-memory.ts'
import type { Named } from '../../core/http/lookup.ts'
import type { CopyKind, InstanceCopy } from '../instances/contract.ts'
import type { CompressionState, SnapshotContent, SnapshotRecord, SnapshotStatus, SnapshotWithCopy } from './record.ts'

interface Row {
  id: string
  host_id: string
  status: SnapshotStatus
  kind: CopyKind
  name: string | null
  source_id: string
  source_name: string
  hypervisor: string
  image_digest: string
  copy: string | null
  tags: string
  scheduled: number
  created_at: number | string
  /** larger than that of every older snapshot of the source: the clock may have been put back */
  number: number | string
  disk_bytes: number | string
  memory_bytes: number | string | null
  compressed_bytes: number | string | null
  compression: string | null
  compression_state: CompressionState
  compression_error: string | null
}

const TABLE = 'snapshots_snapshots'
/** All columns but the copy, which is large. */
const COLUMNS = [
  'id', 'status', 'kind', 'name', 'source_id', 'source_name', 'hypervisor', 'image_digest', 'tags', 'scheduled', 'created_at', 'disk_bytes',
  'memory_bytes', 'compressed_bytes', 'compression', 'compression_state', 'compression_error'
] as const satisfies readonly (keyof Row)[]

const ORDER = { columns: { created_at: 'created_at', name: 'name' }, nullable: ['name'], id: 'id', tie: 'id' } as const satisfies RowOrder<string>

/** The filters of a list. */
export interface SnapshotFilter {
  readonly name?: string
  readonly kind?: CopyKind
  readonly sourceId?: string
  readonly tags?: Readonly<Record<string, string>>
}

type Summary = Pick<Row, typeof COLUMNS[number]>

export class SnapshotRepository {
  readonly #database: Knex
  readonly #hostId: string
  readonly #changes: Changes

  constructor (database: Knex, hostId: string, journal?: Journal) {
    this.#database = database
    this.#hostId = hostId
    this.#changes = createChanges(database, journal, { resource: 'snapshot', scope: 'snapshot:read', list: async () => (await this.ready()).map(stateOf) })
  }

  /** All rows of this host, oldest first, whatever their status. */
  async all (): Promise<SnapshotRecord[]> {
    const rows: Summary[] = await this.#rows().select(...COLUMNS).orderBy([{ column: 'created_at' }, { column: 'id' }])
    return rows.map(recordOf)
  }

  /** Those that are whole, oldest first. */
  async ready (): Promise<SnapshotRecord[]> {
    return (await this.all()).filter(({ status }) => status === 'ready')
  }

  /** A page of those that are whole. */
  async page ({ name, kind, sourceId, tags }: SnapshotFilter, page: WholePage<keyof typeof ORDER.columns>): Promise<Found<SnapshotRecord>> {
    const found = await pageOf<Summary, keyof typeof ORDER.columns>(() => this.#ready(), (query) => {
      if (name !== undefined) whereIs(query, 'name', name)
      if (kind !== undefined) query.where({ kind })
      if (sourceId !== undefined) query.where({ source_id: sourceId })
      whereTags(query, 'tags', tags)
      return { isNarrow: name !== undefined || (sourceId !== undefined && !page.sort.endsWith('created_at')) }
    }, ORDER, page)
    return { ...found, items: found.items.map(recordOf) }
  }

  /** Whole ones whose id begins with a text, or is that text. */
  async alike (text: string): Promise<SnapshotRecord[]> {
    return (await rowsAlike<Summary>(() => this.#ready(), text, { id: 'id' })).map(recordOf)
  }

  /** Whole ones that schedules have made, the one that was made first before the others, whatever the clock said. */
  async scheduledOf (sourceId: string): Promise<SnapshotRecord[]> {
    const rows: Summary[] = await this.#ready().where({ source_id: sourceId, scheduled: 1 }).orderBy([{ column: 'number' }, { column: 'created_at' }, { column: 'id' }])
    return rows.map(recordOf)
  }

  /** Instances of which there are snapshots and which a text may mean; they may be deleted already. */
  async sourcesAlike (text: string): Promise<readonly Named[]> {
    const sources = (): Knex.QueryBuilder => this.#rows().where({ status: 'ready' }).distinct({ id: 'source_id', name: 'source_name' })
    return await rowsAlike<Named>(sources, text, { id: 'source_id', name: 'source_name' })
  }

  async find (id: string): Promise<SnapshotRecord | undefined> {
    const row: Summary | undefined = await this.#rows().select(...COLUMNS).where({ id }).first()
    return row === undefined || row.id !== id ? undefined : recordOf(row)
  }

  /** The snapshot as it is once each change has ended that was begun before, such as one whose connection was lost. */
  async settled (id: string): Promise<SnapshotRecord | undefined> {
    return await inTransaction(this.#database, async (trx) => {
      const row: Summary | undefined = await this.#rows(trx).select(...COLUMNS).where({ id }).forUpdate().first()
      return row === undefined ? undefined : recordOf(row)
    })
  }

  /** A whole one, by its id. */
  async findReady (id: string): Promise<SnapshotRecord | undefined> {
    const record = await this.find(id)
    return record?.status === 'ready' ? record : undefined
  }

  /** A whole one with its copy, by its id. */
  async withCopy (id: string): Promise<SnapshotWithCopy | undefined> {
    const row: Row | undefined = await this.#rows().where({ id, status: 'ready' }).first()
    // MySQL takes texts that differ only in case for equal.
    if (row === undefined || row.id !== id || row.copy === null) return undefined
    const copy: InstanceCopy = JSON.parse(row.copy)
    return { ...recordOf(row), copy }
  }

  /** False when the source has a snapshot of that name already. */
  async insert (record: SnapshotRecord): Promise<boolean> {
    try {
      // Two that are made at the same time may get the same number; those of a schedule are made one after the other.
      const [last]: { number: number | string | null }[] = await this.#rows().where({ source_id: record.sourceId }).max({ number: 'number' })
      // A transaction, although it is one write: when its answer is lost, either the row is locked until it is there, or it never comes.
      await inTransaction(this.#database, async (trx) => {
        await trx<Row>(TABLE).insert({ ...rowOf(record, this.#hostId), number: Number(last?.number ?? 0) + 1 })
      })
      return true
    } catch (error) {
      if (isDuplicate(error)) return false
      throw error
    }
  }

  /** Makes a snapshot whole: its files are on disk. */
  async complete (id: string, { copy, diskBytes, memoryBytes }: SnapshotContent): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      const changed = await this.#rows(trx).where({ id, status: 'creating' })
        .update({ status: 'ready', copy: JSON.stringify(copy), disk_bytes: diskBytes, memory_bytes: memoryBytes })
      if (changed !== 1) throw new Error(`the row of snapshot ${id} is gone`)
      await this.#note(trx, note, 'created', id)
    })
  }

  /** Makes sure that nobody finds a snapshot whose making failed. */
  async abandon (id: string): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      await this.#note(trx, note, 'deleted', id)
      await this.#rows(trx).where({ id }).update({ status: 'deleting', name: null })
    })
  }

  /** Makes the snapshot gone for everybody else, and its name free. False when there is none. */
  async beginDelete (id: string): Promise<boolean> {
    const found = await this.find(id)
    if (found === undefined || found.status === 'creating') return false
    return await this.#changes.commit(async (trx, note) => {
      await this.#note(trx, note, 'deleted', id)
      return await this.#rows(trx).where({ id }).whereNot({ status: 'creating' }).update({ status: 'deleting', name: null }) > 0
    })
  }

  async remove (id: string): Promise<void> {
    await this.#rows().where({ id }).delete()
  }

  /** Makes the compressed memory the one that counts. False when no snapshot waits for it any more. */
  async setCompressed (id: string, compressedBytes: number): Promise<boolean> {
    return await this.#compressed(id, { compression_state: 'compressed', compressed_bytes: compressedBytes, compression_error: null })
  }

  async setCompressionError (id: string, message: string): Promise<void> {
    await this.#compressed(id, { compression_state: 'error', compression_error: message })
  }

  async #compressed (id: string, change: Partial<Row>): Promise<boolean> {
    return await this.#changes.commit(async (trx, note) => {
      const changed = await this.#rows(trx).where({ id, status: 'ready', compression_state: 'compressing' }).update(change)
      if (changed > 0) await this.#note(trx, note, 'updated', id)
      return changed > 0
    })
  }

  /** Notes a change only of whole snapshots. Waits for a commit of this row whose answer was lost and which is still to be done. */
  async #note (trx: Knex, note: Note, action: ChangeAction, id: string): Promise<void> {
    const row: Summary | undefined = await this.#rows(trx).select(...COLUMNS).where({ id, status: 'ready' }).forUpdate().first()
    if (row !== undefined) note({ action, ...stateOf(recordOf(row)) })
  }

  #ready (): Knex.QueryBuilder {
    return this.#rows().where({ status: 'ready' }).select(...COLUMNS)
  }

  #rows (db: Knex = this.#database): Knex.QueryBuilder<Row, Row[]> {
    return db<Row>(TABLE).where({ host_id: this.#hostId })
  }
}

function stateOf ({ id, name, status, tags, kind, sourceId, sourceName, compressionState }: SnapshotRecord): ResourceState {
  return { id, name, status, tags, details: { kind, source_instance_id: sourceId, source_instance_name: sourceName, compression_state: compressionState } }
}

function rowOf (record: SnapshotRecord, hostId: string): Omit<Row, 'number'> {
  return {
    id: record.id,
    host_id: hostId,
    status: record.status,
    kind: record.kind,
    name: record.name,
    source_id: record.sourceId,
    source_name: record.sourceName,
    hypervisor: record.hypervisor,
    image_digest: record.imageDigest,
    copy: null,
    tags: JSON.stringify(record.tags),
    scheduled: record.scheduled ? 1 : 0,
    created_at: record.createdAt,
    disk_bytes: record.diskBytes,
    memory_bytes: record.memoryBytes,
    compressed_bytes: record.compressedBytes,
    compression: record.compression === null ? null : JSON.stringify(record.compression),
    compression_state: record.compressionState,
    compression_error: record.compressionError
  }
}

function recordOf (row: Summary): SnapshotRecord {
  const tags: Record<string, string> = JSON.parse(row.tags)
  const compression: Compression | null = row.compression === null ? null : JSON.parse(row.compression)
  return {
    id: row.id,
    status: row.status,
    kind: row.kind,
    name: row.name,
    sourceId: row.source_id,
    sourceName: row.source_name,
    hypervisor: row.hypervisor,
    imageDigest: row.image_digest,
    tags,
    scheduled: row.scheduled !== 0,
    createdAt: Number(row.created_at),
    diskBytes: Number(row.disk_bytes),
    memoryBytes: row.memory_bytes === null ? null : Number(row.memory_bytes),
    compressedBytes: row.compressed_bytes === null ? null : Number(row.compressed_bytes),
    compression,
    compressionState: row.compression_state,
    compressionError: row.compression_error
  }
}
