// Reads and writes the rows of instances. The only file of this plugin that uses knex.
import type { Knex } from 'knex'
import { createChanges, type Changes, type Journal } from '../../../core/db/changes.ts'
import { rowsInTurns } from '../../../core/db/rows-in-turns.ts'
import { isDuplicate } from '../../../core/db/transaction.ts'
import type { VmHandle } from '../../../core/library/hypervisor.ts'
import { StaleInstance } from '../errors.ts'
import type { Life } from '../life/record.ts'
import { isShown, storedState } from './stored-state.ts'
import type { InstanceRecord, InstanceSpec, RecordPatch, RecordStatus } from './record.ts'

interface Row {
  id: string
  host_id: string
  name: string
  status: RecordStatus
  version: number
  created_at: number | string
  image: string
  image_digest: string
  spec: string
  slot: number | null
  handle: string | null
  started_at: number | string | null
  running_at: number | string | null
  stopped_at: number | string | null
  standby_at: number | string | null
  exit_code: number | null
  exit_message: string | null
  /** null in rows from before there was this column */
  life: string | null
}

const TABLE = 'instances_instances'

/** What a VM of the server's own lacks to be an instance. */
export type ClaimFacts = Pick<InstanceRecord, 'name' | 'createdAt' | 'image' | 'imageDigest' | 'spec'>

export interface InstanceRepository {
  /** All instances of one host, oldest first. */
  onHost (hostId: string): Promise<InstanceRecord[]>
  /** `undefined` when the record was stored, else which unique value was taken. */
  insert (record: InstanceRecord): Promise<'name' | 'slot' | undefined>
  /** Returns the record after the change. Fails when somebody else has changed the row since. */
  update (record: InstanceRecord, patch: RecordPatch): Promise<InstanceRecord>
  /** Makes an instance of a row that was stored ahead; `undefined` when the name is taken. Fails when somebody else has changed the row since. */
  claim (record: InstanceRecord, facts: ClaimFacts): Promise<InstanceRecord | undefined>
  /** Version of the stored row; `undefined` when there is none. */
  versionOf (id: string): Promise<number | undefined>
  remove (id: string): Promise<void>
}

export function createRepository (database: Knex, hostId: string, journal?: Journal): InstanceRepository {
  const repository = rowsOf(database, createChanges(database, journal, {
    resource: 'instance',
    scope: 'instance:read',
    list: async () => (await repository.onHost(hostId)).filter(isShown).map(storedState)
  }))
  return repository
}

function rowsOf (database: Knex, changes: Changes): InstanceRepository {
  return {
    async onHost (hostId) {
      const records = await rowsInTurns(() => database(TABLE).where({ host_id: hostId }), 'id', fromRow)
      return records.sort((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1))
    },

    async insert (record) {
      try {
        await changes.commit(async (trx, note) => {
          await trx<Row>(TABLE).insert({ ...toRow(record), id: record.id, host_id: record.hostId, name: record.name, created_at: record.createdAt, image: record.image, image_digest: record.imageDigest })
          if (isShown(record)) note({ action: 'created', ...storedState(record) })
        })
        return undefined
      } catch (error) {
        if (!isDuplicate(error)) throw error
        const [named] = await database<Row>(TABLE).where({ name: record.name }).select('id')
        return named === undefined ? 'slot' : 'name'
      }
    },

    async update (record, patch) {
      const next: InstanceRecord = { ...record, ...patch, version: record.version + 1 }
      await changes.commit(async (trx, note) => {
        const changed = await trx<Row>(TABLE).where({ id: record.id, version: record.version }).update(toRow(next))
        if (changed !== 1) throw StaleInstance(record.id)
        // Which user its VM has is nothing that is shown.
        if (isShown(next) && next.slot === record.slot) note({ action: 'updated', ...storedState(next) })
      })
      return next
    },

    async claim (record, facts) {
      const next: InstanceRecord = { ...record, ...facts, version: record.version + 1 }
      const columns = { ...toRow(next), name: next.name, created_at: next.createdAt, image: next.image, image_digest: next.imageDigest }
      try {
        await changes.commit(async (trx, note) => {
          const changed = await trx<Row>(TABLE).where({ id: record.id, version: record.version }).update(columns)
          if (changed !== 1) throw StaleInstance(record.id)
          note({ action: 'created', ...storedState(next) })
        })
        return next
      } catch (error) {
        if (isDuplicate(error)) return undefined
        throw error
      }
    },

    async versionOf (id) {
      const [row] = await database<Row>(TABLE).where({ id }).select('version')
      return row === undefined ? undefined : Number(row.version)
    },

    async remove (id) {
      await changes.commit(async (trx, note) => {
        // Waits for a commit of this row whose answer was lost and which is still to be done.
        const row = await trx<Row>(TABLE).where({ id }).forUpdate().first()
        if (row === undefined || await trx<Row>(TABLE).where({ id }).delete() === 0) return
        const record = fromRow(row)
        if (isShown(record)) note({ action: 'deleted', ...storedState(record) })
      })
    }
  }
}

function toRow (record: InstanceRecord): Omit<Row, 'id' | 'host_id' | 'name' | 'created_at' | 'image' | 'image_digest'> {
  return {
    status: record.status,
    version: record.version,
    spec: JSON.stringify(record.spec),
    handle: record.handle === null ? null : JSON.stringify(record.handle),
    started_at: record.startedAt,
    running_at: record.runningAt,
    stopped_at: record.stoppedAt,
    standby_at: record.standbyAt,
    exit_code: record.exit?.exitCode ?? null,
    exit_message: record.exit?.exitMessage ?? null,
    life: JSON.stringify(record.life),
    slot: record.slot
  }
}

function fromRow (row: Row): InstanceRecord {
  const spec: InstanceSpec = JSON.parse(row.spec)
  const handle: VmHandle | null = row.handle === null ? null : JSON.parse(row.handle)
  const life: Life = row.life === null ? {} : JSON.parse(row.life)
  return {
    id: row.id,
    hostId: row.host_id,
    name: row.name,
    status: row.status,
    version: row.version,
    createdAt: Number(row.created_at),
    image: row.image,
    imageDigest: row.image_digest,
    spec,
    slot: row.slot,
    handle,
    startedAt: timeOf(row.started_at),
    runningAt: timeOf(row.running_at),
    stoppedAt: timeOf(row.stopped_at),
    standbyAt: timeOf(row.standby_at),
    exit: row.exit_message === null ? null : { exitCode: row.exit_code, exitMessage: row.exit_message },
    life
  }
}

// MySQL's driver gives big integers as strings when they might not fit.
function timeOf (value: number | string | null): number | null {
  return value === null ? null : Number(value)
}
