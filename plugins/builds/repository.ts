// Reads and writes the rows of the builds of one host. With builders/repository.ts the only file of this plugin that uses knex.
import type { Knex } from 'knex'
import { createChanges, type Changes, type Journal, type ResourceState } from '../../core/db/changes.ts'
import { pageOf, rowsAlike, whereTags, type RowOrder } from '../../core/db/page.ts'
import type { Found, WholePage } from '../../core/http/list.ts'
import { UNFINISHED, type BuildEnd, type BuildRecord, type BuildStatus, type StoredProvenance } from './record.ts'
import type { BuildOutcome } from './run.ts'

interface Row {
  id: string
  host_id: string
  status: BuildStatus
  builder_id: string | null
  instance_id: string | null
  image_ref: string | null
  image_digest: string | null
  error: string | null
  provenance: string
  tags: string
  created_at: number | string
  started_at: number | string | null
  completed_at: number | string | null
}

const BUILDS = 'builds_builds'
const ORDER = { columns: { created_at: 'created_at' }, id: 'id', tie: 'id' } as const satisfies RowOrder<string>

export interface BuildFilter { readonly status?: BuildStatus, readonly tags?: Readonly<Record<string, string>> }

export class BuildRepository {
  readonly #database: Knex
  readonly #hostId: string
  readonly #changes: Changes

  constructor (database: Knex, hostId: string, journal?: Journal) {
    this.#database = database
    this.#hostId = hostId
    this.#changes = createChanges(database, journal, { resource: 'build', scope: 'build:read', list: async () => (await this.all()).map(stateOf) })
  }

  async insert (record: BuildRecord): Promise<void> {
    const row: Row = {
      id: record.id,
      host_id: this.#hostId,
      status: record.status,
      builder_id: record.builderId,
      instance_id: record.instanceId,
      image_ref: record.imageRef,
      image_digest: record.imageDigest,
      error: record.error,
      provenance: JSON.stringify(record.provenance),
      tags: JSON.stringify(record.tags),
      created_at: record.createdAt,
      started_at: record.startedAt,
      completed_at: record.completedAt
    }
    await this.#changes.commit(async (trx, note) => {
      await trx<Row>(BUILDS).insert(row)
      note({ action: 'created', ...stateOf(record) })
    })
  }

  /** Oldest first. */
  async all (): Promise<BuildRecord[]> {
    const rows: Row[] = await this.#builds().orderBy([{ column: 'created_at' }, { column: 'id' }])
    return rows.map(recordOf)
  }

  /** Oldest first. */
  async unfinished (): Promise<BuildRecord[]> {
    const rows: Row[] = await this.#builds().whereIn('status', [...UNFINISHED]).orderBy([{ column: 'created_at' }, { column: 'id' }])
    return rows.map(recordOf)
  }

  async page ({ status, tags }: BuildFilter, page: WholePage<keyof typeof ORDER.columns>): Promise<Found<BuildRecord>> {
    const found = await pageOf<Row, keyof typeof ORDER.columns>(() => this.#builds(), (query) => {
      if (status !== undefined) query.where({ status })
      whereTags(query, 'tags', tags)
      return { isNarrow: false }
    }, ORDER, page)
    return { ...found, items: found.items.map(recordOf) }
  }

  /** The builds that a text may mean. */
  async alike (text: string): Promise<BuildRecord[]> {
    return (await rowsAlike<Row>(() => this.#builds(), text, { id: 'id' })).map(recordOf)
  }

  async find (id: string): Promise<BuildRecord | undefined> {
    const row: Row | undefined = await this.#builds().where({ id }).first()
    // MySQL ignores case when it compares texts.
    return row === undefined || row.id !== id ? undefined : recordOf(row)
  }

  async setStarted (id: string, now: number): Promise<void> {
    await this.#change(id, { status: 'building', started_at: now })
  }

  async setInstance (id: string, instanceId: string): Promise<void> {
    await this.#change(id, { instance_id: instanceId })
  }

  async setPushing (id: string): Promise<void> {
    await this.#change(id, { status: 'pushing' })
  }

  /** Stores the image of an unfinished build. */
  async setOutcome (id: string, outcome: BuildOutcome): Promise<void> {
    await this.#change(id, { image_ref: outcome.imageRef, image_digest: outcome.digest, provenance: JSON.stringify(provenanceOf(outcome)) })
  }

  async finish (id: string, { status, error }: BuildEnd, now: number): Promise<void> {
    await this.#change(id, { status, error: error ?? null, completed_at: now })
  }

  /** Ids of finished builds: those beyond the `keep` youngest, and those that ended before `before`. */
  async outdated (keep: number, before: number): Promise<string[]> {
    const rows: Pick<Row, 'id' | 'completed_at'>[] = await this.#builds().whereNotIn('status', [...UNFINISHED])
      .orderBy([{ column: 'created_at', order: 'desc' }]).select('id', 'completed_at')
    return rows.filter(({ completed_at: completedAt }, index) => index >= keep || Number(completedAt) < before).map(({ id }) => id)
  }

  async remove (id: string): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      // Waits for a commit of this row whose answer was lost and which is still to be done.
      const row: Row | undefined = await this.#builds(trx).where({ id }).forUpdate().first()
      if (await this.#builds(trx).where({ id }).delete() > 0 && row !== undefined) note({ action: 'deleted', ...stateOf(recordOf(row)) })
    })
  }

  /** @throws for a finished or unknown build, which must not be changed any more */
  async #change (id: string, change: Partial<Row>): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      const changed = await this.#builds(trx).where({ id }).whereIn('status', [...UNFINISHED]).update(change)
      const row: Row | undefined = await this.#builds(trx).where({ id }).first()
      if (changed !== 1 || row === undefined) throw new Error(`build ${id} is over, or its row is gone`)
      note({ action: 'updated', ...stateOf(recordOf(row)) })
    })
  }

  #builds (db: Knex = this.#database): Knex.QueryBuilder<Row, Row[]> {
    return db<Row>(BUILDS).where({ host_id: this.#hostId })
  }
}

function stateOf ({ id, status, tags, imageRef, imageDigest, error }: BuildRecord): ResourceState {
  // For the API's view: an image is the build's once it is ready.
  const image = status === 'ready' ? { image_ref: imageRef, image_digest: imageDigest } : {}
  return { id, name: null, status, tags, details: { ...image, error } }
}

function provenanceOf ({ provenance }: BuildOutcome): StoredProvenance {
  const { sourceHash, baseImageDigest, lockfileHashes, builder, builderVersion, timestamp } = provenance
  return { sourceHash, ...baseImageDigest === undefined ? {} : { baseImageDigest }, lockfileHashes, builder, builderVersion, timestamp: timestamp.toISOString() }
}

function recordOf (row: Row): BuildRecord {
  const tags: Record<string, string> = JSON.parse(row.tags)
  const provenance: StoredProvenance = JSON.parse(row.provenance)
  return {
    id: row.id,
    status: row.status,
    builderId: row.builder_id,
    instanceId: row.instance_id,
    imageRef: row.image_ref,
    imageDigest: row.image_digest,
    error: row.error,
    provenance,
    tags,
    createdAt: Number(row.created_at),
    startedAt: timeOf(row.started_at),
    completedAt: timeOf(row.completed_at)
  }
}

function timeOf (value: number | string | null): number | null {
  return value === null ? null : Number(value)
}
