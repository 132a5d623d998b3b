// Reads and writes the rows of the schedules that this host runs.
import type { Knex } from 'knex'
import type { ScheduleRecord } from './record.ts'

interface Row {
  instance_id: string
  host_id: string
  run_interval: string
  max_count: number | null
  max_age: string | null
  name_prefix: string | null
  metadata: string
  next_run_at: number | string
  last_run_at: number | string | null
  last_snapshot_id: string | null
  last_error: string | null
  created_at: number | string
  updated_at: number | string
}

const TABLE = 'snapshots_schedules'

export class ScheduleRepository {
  readonly #database: Knex
  readonly #hostId: string

  constructor (database: Knex, hostId: string) {
    this.#database = database
    this.#hostId = hostId
  }

  async all (): Promise<ScheduleRecord[]> {
    const rows: Row[] = await this.#rows().orderBy([{ column: 'next_run_at' }, { column: 'instance_id' }])
    return rows.map(recordOf)
  }

  /** Those whose run is due. */
  async due (now: number): Promise<ScheduleRecord[]> {
    const rows: Row[] = await this.#rows().where('next_run_at', '<=', now).orderBy([{ column: 'next_run_at' }, { column: 'instance_id' }])
    return rows.map(recordOf)
  }

  async find (instanceId: string): Promise<ScheduleRecord | undefined> {
    const row: Row | undefined = await this.#rows().where({ instance_id: instanceId }).first()
    // MySQL takes texts that differ only in case for equal.
    return row === undefined || row.instance_id !== instanceId ? undefined : recordOf(row)
  }

  async insert (record: ScheduleRecord): Promise<void> {
    await this.#database<Row>(TABLE).insert(rowOf(record, this.#hostId))
  }

  /** Stores only what a user can set, since a run may be under way. @param cadence `new` when the next run is moved */
  async configure (record: ScheduleRecord, cadence: 'same' | 'new'): Promise<void> {
    const row = rowOf(record, this.#hostId)
    await this.#rows().where({ instance_id: record.instanceId }).update({
      run_interval: row.run_interval,
      max_count: row.max_count,
      max_age: row.max_age,
      name_prefix: row.name_prefix,
      metadata: row.metadata,
      updated_at: row.updated_at,
      ...(cadence === 'new' ? { next_run_at: row.next_run_at } : {})
    })
  }

  /** Takes the run that is due, so that it happens only once in any case. False when somebody else has moved it. */
  async claim ({ instanceId, nextRunAt }: ScheduleRecord, next: number, now: number): Promise<boolean> {
    return await this.#rows().where({ instance_id: instanceId, next_run_at: nextRunAt }).update({ next_run_at: next, last_run_at: now }) > 0
  }

  /** Moves the next run. */
  async move ({ instanceId, nextRunAt }: ScheduleRecord, next: number): Promise<void> {
    await this.#rows().where({ instance_id: instanceId, next_run_at: nextRunAt }).update({ next_run_at: next })
  }

  async noteSnapshot (instanceId: string, snapshotId: string): Promise<void> {
    await this.#rows().where({ instance_id: instanceId }).update({ last_snapshot_id: snapshotId, last_error: null })
  }

  async noteError (instanceId: string, message: string): Promise<void> {
    await this.#rows().where({ instance_id: instanceId }).update({ last_error: message })
  }

  /** False when there is none. */
  async remove (instanceId: string): Promise<boolean> {
    return await this.#rows().where({ instance_id: instanceId }).delete() > 0
  }

  #rows (): Knex.QueryBuilder<Row, Row[]> {
    return this.#database<Row>(TABLE).where({ host_id: this.#hostId })
  }
}

function rowOf (record: ScheduleRecord, hostId: string): Row {
  return {
    instance_id: record.instanceId,
    host_id: hostId,
    run_interval: record.interval,
    max_count: record.maxCount,
    max_age: record.maxAge,
    name_prefix: record.namePrefix,
    metadata: JSON.stringify(record.metadata),
    next_run_at: record.nextRunAt,
    last_run_at: record.lastRunAt,
    last_snapshot_id: record.lastSnapshotId,
    last_error: record.lastError,
    created_at: record.createdAt,
    updated_at: record.updatedAt
  }
}

function recordOf (row: Row): ScheduleRecord {
  const metadata: Record<string, string> = JSON.parse(row.metadata)
  return {
    instanceId: row.instance_id,
    interval: row.run_interval,
    maxCount: row.max_count,
    maxAge: row.max_age,
    namePrefix: row.name_prefix,
    metadata,
    nextRunAt: Number(row.next_run_at),
    lastRunAt: row.last_run_at === null ? null : Number(row.last_run_at),
    lastSnapshotId: row.last_snapshot_id,
    lastError: row.last_error,
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at)
  }
}
