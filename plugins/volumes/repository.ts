// Reads and writes the rows of the volumes of one host, and decides who may have one. The only file of this plugin that uses knex.
import type { Knex } from 'knex'
import { NotFound } from '../../core/errors/common.ts'
import { createChanges, type ChangeAction, type Changes, type Journal, type Note, type ResourceState } from '../../core/db/changes.ts'
import { pageOf, rowsAlike, whereIs, whereTags, type RowOrder } from '../../core/db/page.ts'
import { inTransaction, isDuplicate } from '../../core/db/transaction.ts'
import type { Found, WholePage } from '../../core/http/list.ts'
import type { VolumeClaim } from '../instances/volumes/contract.ts'
import { VolumeAttached, VolumeInUse } from './errors.ts'
import type { Attachment, VolumeRecord, VolumeStatus, VolumeWithAttachments } from './record.ts'

interface Row {
  id: string
  host_id: string
  status: VolumeStatus
  name: string
  /** the name in lower case, which is unique; null: it reserves nothing */
  name_key: string | null
  size_mib: number
  tags: string
  created_at: number | string
  generation: number | string
  owner: string | null
  turns: number | string
}

interface AttachmentRow {
  volume_id: string
  instance_id: string
  host_id: string
  mount_path: string
  readonly: number
  created_at: number | string
}

const MIB_PER_GB = 1024
const VOLUMES = 'volumes_volumes'
const ATTACHMENTS = 'volumes_attachments'
const ORDER = { columns: { created_at: 'created_at', name: 'name', size_gb: 'size_mib' }, id: 'id', tie: 'id' } as const satisfies RowOrder<string>

export interface VolumeFilter { readonly name?: string, readonly tags?: Readonly<Record<string, string>> }

export class VolumeRepository {
  readonly #database: Knex
  readonly #hostId: string
  readonly #changes: Changes

  constructor (database: Knex, hostId: string, journal?: Journal) {
    this.#database = database
    this.#hostId = hostId
    this.#changes = createChanges(database, journal, {
      resource: 'volume',
      scope: 'volume:read',
      isComposed: true,
      list: async () => (await this.ready()).filter(({ owner }) => owner === undefined).map((volume) => stateOf(volume, volume.attachments))
    })
  }

  /** All rows of this host, oldest first, whatever their status. */
  async all (): Promise<VolumeRecord[]> {
    const rows: Row[] = await this.#volumes().orderBy([{ column: 'created_at' }, { column: 'id' }])
    return rows.map(recordOf)
  }

  /** Those that are whole, oldest first. */
  async ready (): Promise<VolumeWithAttachments[]> {
    const [records, attachments] = await Promise.all([this.all(), this.attachments()])
    return withAttachments(records.filter(({ status }) => status === 'ready'), attachments)
  }

  /** A page of whole volumes that belong to callers. */
  async page ({ name, tags }: VolumeFilter, page: WholePage<keyof typeof ORDER.columns>): Promise<Found<VolumeWithAttachments>> {
    const found = await pageOf<Row, keyof typeof ORDER.columns>(() => this.#whole(undefined), (query) => {
      if (name !== undefined) whereIs(query, 'name', name)
      whereTags(query, 'tags', tags)
      return { isNarrow: name !== undefined }
    }, ORDER, page)
    return { ...found, items: await this.#attached(found.items) }
  }

  /** Whole ones that a text may mean: those of callers, or those of a plugin. */
  async alike (text: string, owner: string | undefined): Promise<VolumeWithAttachments[]> {
    return await this.#attached(await rowsAlike<Row>(() => this.#whole(owner), text, { id: 'id', name: 'name' }))
  }

  /** Whole volumes of a plugin, oldest first. */
  async ownedBy (owner: string): Promise<VolumeRecord[]> {
    const rows: Row[] = await this.#whole(owner).orderBy([{ column: 'created_at' }, { column: 'id' }])
    return rows.map(recordOf)
  }

  /** A volume of a plugin, whatever its status. */
  async findOwned (id: string, owner: string): Promise<VolumeRecord | undefined> {
    const row: Row | undefined = await this.#volumes().where({ id, owner }).first()
    return row === undefined || row.id !== id ? undefined : recordOf(row)
  }

  /** All of this host, oldest first. */
  async attachments (): Promise<Attachment[]> {
    const rows: AttachmentRow[] = await this.#attachments().orderBy([{ column: 'created_at' }, { column: 'instance_id' }])
    return rows.map(attachmentOf)
  }

  /** Once each change of them has ended that was begun before, such as one whose connection was lost. */
  async attachmentsOf (instanceId: string): Promise<Attachment[]> {
    return await inTransaction(this.#database, async (trx) => {
      const rows: AttachmentRow[] = await this.#attachments(trx).where({ instance_id: instanceId }).forUpdate()
      return rows.map(attachmentOf)
    })
  }

  /** A whole one by its id. */
  async find (id: string): Promise<VolumeRecord | undefined> {
    const row: Row | undefined = await this.#volumes().where({ id, status: 'ready' }).first()
    // MySQL takes texts that differ only in case for equal.
    return row === undefined || row.id !== id ? undefined : recordOf(row)
  }

  /**
   * `undefined` when the record was stored, else which value is taken. Names of callers' volumes are unique on one host, whatever their case; names of plugins' volumes are only for people to read.
   * Callers find a volume by its id or its name, so neither may be what another one is found by.
   */
  async insert (record: VolumeRecord): Promise<'id' | 'name' | undefined> {
    const { id, status, name, sizeGb, tags, createdAt, generation, owner = null } = record
    try {
      // Those of one server come one after the other, and no other server writes rows of this host: nobody takes the id or the name in between.
      return await this.#changes.commit(async (trx) => {
        const taken = owner === null ? await this.#takenByAnother(trx, record) : undefined
        if (taken !== undefined) return taken
        await trx<Row>(VOLUMES).insert({
          id, host_id: this.#hostId, status, name, name_key: owner === null ? name.toLowerCase() : null, size_mib: sizeGb * MIB_PER_GB, tags: JSON.stringify(tags), created_at: createdAt, generation, owner, turns: 0
        })
        return undefined
      })
    } catch (error) {
      if (!isDuplicate(error)) throw error
      // Ids are unique on all hosts.
      return await this.#database<Row>(VOLUMES).where({ id }).first() === undefined ? 'name' : 'id'
    }
  }

  /** Whether the id is another volume's name, or the name another's id. Older volumes may share a name that none of them reserves. */
  async #takenByAnother (trx: Knex.Transaction, { id, name }: VolumeRecord): Promise<'id' | 'name' | undefined> {
    const others = (): Knex.QueryBuilder<Row, Row[]> => this.#volumes(trx).whereNull('owner').whereNot({ status: 'deleting' })
    if (await others().where({ name_key: id.toLowerCase() }).first() !== undefined || await others().where({ name: id }).first() !== undefined) return 'id'
    return await others().where({ id: name }).first() === undefined ? undefined : 'name'
  }

  /** Makes a volume whole: its file is on disk. */
  async complete (id: string, sizeGb: number): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      const changed = await this.#volumes(trx).where({ id, status: 'creating' }).update({ status: 'ready', size_mib: sizeGb * MIB_PER_GB })
      if (changed !== 1) throw new Error(`the row of volume ${id} is gone`)
      await this.#note(trx, note, 'created', id)
    })
  }

  /** Makes sure that nobody finds a volume whose making failed. */
  async abandon (id: string): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      await this.#note(trx, note, 'deleted', id)
      await this.#volumes(trx).where({ id }).update({ status: 'deleting', name_key: null })
    })
  }

  /** Makes the volume gone for everybody else. @throws not_found, conflict */
  async beginDelete (id: string): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      const record = await this.#lock(trx, id)
      const rows: AttachmentRow[] = await this.#attachments(trx).where({ volume_id: record.id })
      if (rows.length > 0) throw VolumeAttached(record.name, rows.map(({ instance_id: instanceId }) => instanceId))
      await this.#note(trx, note, 'deleted', id)
      await this.#volumes(trx).where({ id: record.id }).update({ status: 'deleting', name_key: null })
    })
  }

  /** Whether there is a row of a volume that did not become whole, or is being deleted; once each change of it has ended that was begun before, such as one whose connection was lost. */
  async isLeft (record: VolumeRecord): Promise<boolean> {
    return await inTransaction(this.#database, async (trx) => await this.#left(record, trx).forUpdate().first() !== undefined)
  }

  /** Removes that row; never that of another volume, which may have its id. */
  async giveUp (record: VolumeRecord): Promise<void> {
    await this.#left(record).delete()
  }

  /** All or none. @throws not_found, volume_in_use */
  async attach (instanceId: string, claims: readonly VolumeClaim[], now: number): Promise<void> {
    // In one order, so that two callers that want the same volumes cannot wait for each other.
    const ordered = [...claims].sort((a, b) => a.volumeId < b.volumeId ? -1 : 1)
    await this.#changes.commit(async (trx, note) => {
      for (const claim of ordered) {
        await this.#attachOne(trx, instanceId, claim, now)
        await this.#note(trx, note, 'updated', claim.volumeId)
      }
    })
  }

  /** Returns which of these volumes the instance had. */
  async detach (instanceId: string, volumeIds: readonly string[]): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      const rows: AttachmentRow[] = await this.#attachments(trx).where({ instance_id: instanceId }).whereIn('volume_id', [...volumeIds]).orderBy('volume_id').forUpdate()
      for (const { volume_id: id } of rows) {
        await this.#attachments(trx).where({ instance_id: instanceId, volume_id: id }).delete()
        await this.#note(trx, note, 'updated', id)
      }
    })
  }

  async #attachOne (trx: Knex.Transaction, instanceId: string, { volumeId, mountPath, readonly }: VolumeClaim, now: number): Promise<void> {
    const record = await this.#lock(trx, volumeId)
    const rows: AttachmentRow[] = await this.#attachments(trx).where({ volume_id: volumeId })
    const refusal = refusalOf(rows, instanceId, readonly)
    if (refusal !== undefined) throw VolumeInUse(record.name, refusal)
    await this.#attachments(trx).insert({ volume_id: volumeId, instance_id: instanceId, host_id: this.#hostId, mount_path: mountPath, readonly: readonly ? 1 : 0, created_at: now })
    if (!readonly) await this.#volumes(trx).where({ id: volumeId }).increment('generation', 1)
  }

  /** The first statement is a write, which takes the lock on both databases: from here on, callers that want the same volume come one after the other. */
  async #lock (trx: Knex.Transaction, id: string): Promise<VolumeRecord> {
    await this.#volumes(trx).where({ id, status: 'ready' }).increment('turns', 1)
    const row: Row | undefined = await this.#volumes(trx).where({ id, status: 'ready' }).first()
    if (row === undefined || row.id !== id) throw NotFound('volume', id)
    return recordOf(row)
  }

  /** Notes a change only of whole volumes that belong to callers. Waits for a commit of this row whose answer was lost and which is still to be done. */
  async #note (trx: Knex, note: Note, action: ChangeAction, id: string): Promise<void> {
    const row: Row | undefined = await this.#volumes(trx).where({ id, status: 'ready' }).whereNull('owner').forUpdate().first()
    if (row === undefined) return
    const attachments: AttachmentRow[] = await this.#attachments(trx).where({ volume_id: id }).orderBy([{ column: 'created_at' }, { column: 'instance_id' }])
    note({ action, ...stateOf(recordOf(row), attachments.map(attachmentOf)) })
  }

  async #attached (rows: readonly Row[]): Promise<VolumeWithAttachments[]> {
    const attachments: AttachmentRow[] = await this.#attachments().whereIn('volume_id', rows.map(({ id }) => id)).orderBy([{ column: 'created_at' }, { column: 'instance_id' }])
    return withAttachments(rows.map(recordOf), attachments.map(attachmentOf))
  }

  #left ({ id, name, createdAt }: VolumeRecord, db: Knex = this.#database): Knex.QueryBuilder<Row, Row[]> {
    return this.#volumes(db).where({ id, name, created_at: createdAt }).whereNot({ status: 'ready' })
  }

  #whole (owner: string | undefined): Knex.QueryBuilder<Row, Row[]> {
    const rows = this.#volumes().where({ status: 'ready' })
    return owner === undefined ? rows.whereNull('owner') : rows.where({ owner })
  }

  #volumes (db: Knex = this.#database): Knex.QueryBuilder<Row, Row[]> {
    return db<Row>(VOLUMES).where({ host_id: this.#hostId })
  }

  #attachments (db: Knex = this.#database): Knex.QueryBuilder<AttachmentRow, AttachmentRow[]> {
    return db<AttachmentRow>(ATTACHMENTS).where({ host_id: this.#hostId })
  }
}

function withAttachments (records: readonly VolumeRecord[], attachments: readonly Attachment[]): VolumeWithAttachments[] {
  const byVolume = new Map<string, Attachment[]>()
  for (const attachment of attachments) byVolume.set(attachment.volumeId, [...byVolume.get(attachment.volumeId) ?? [], attachment])
  return records.map((record) => ({ ...record, attachments: byVolume.get(record.id) ?? [] }))
}

function refusalOf (rows: readonly AttachmentRow[], instanceId: string, readonly: boolean): string | undefined {
  if (rows.some((row) => row.instance_id === instanceId)) return 'it is attached to this instance already'
  const writer = rows.find((row) => row.readonly === 0)
  if (writer !== undefined) return `it is attached to instance ${writer.instance_id}, which may write it`
  const [reader] = rows
  if (reader === undefined || readonly) return undefined
  return `${rows.length === 1 ? `instance ${reader.instance_id} reads` : `${rows.length} instances read`} it, so nobody may write it; attach it with readonly: true`
}

function stateOf ({ id, name, status, tags, sizeGb }: VolumeRecord, attachments: readonly Attachment[]): ResourceState {
  return { id, name, status, tags, details: { size_gb: sizeGb, attachments: attachments.map(({ instanceId, mountPath, readonly }) => ({ instance_id: instanceId, mount_path: mountPath, readonly })) } }
}

function recordOf (row: Row): VolumeRecord {
  const tags: Record<string, string> = JSON.parse(row.tags)
  return {
    id: row.id,
    status: row.status,
    name: row.name,
    sizeGb: row.size_mib / MIB_PER_GB,
    tags,
    createdAt: Number(row.created_at),
    generation: Number(row.generation),
    ...(row.owner === null ? {} : { owner: row.owner })
  }
}

function attachmentOf (row: AttachmentRow): Attachment {
  return { volumeId: row.volume_id, instanceId: row.instance_id, mountPath: row.mount_path, readonly: row.readonly === 1 }
}
