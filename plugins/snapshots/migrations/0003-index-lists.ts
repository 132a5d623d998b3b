// What lists are ordered and filtered by.
import type { Knex } from 'knex'
import { addIndexes, dropIndexes, type Index } from '../../../core/db/indexes.ts'

const INDEXES: readonly Index[] = [
  { table: 'snapshots_snapshots', name: 'snapshots_by_time', columns: ['host_id', 'created_at', 'id'] },
  { table: 'snapshots_snapshots', name: 'snapshots_by_name', columns: ['host_id', 'name', 'id'] },
  { table: 'snapshots_snapshots', name: 'snapshots_by_source', columns: ['host_id', 'source_id', 'created_at', 'id'] },
  { table: 'snapshots_snapshots', name: 'snapshots_by_source_name', columns: ['host_id', 'source_name'] }
]

export async function up (knex: Knex): Promise<void> {
  await addIndexes(knex, INDEXES)
}

export async function down (knex: Knex): Promise<void> {
  await dropIndexes(knex, INDEXES)
}
