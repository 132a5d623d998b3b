// Indexes for the order and the filters of lists.
import type { Knex } from 'knex'
import { addIndexes, dropIndexes, type Index } from '../../../core/db/indexes.ts'

const INDEXES: readonly Index[] = [
  { table: 'builds_builds', name: 'builds_by_time', columns: ['host_id', 'created_at', 'id'] },
  { table: 'builds_builds', name: 'builds_by_status', columns: ['host_id', 'status', 'created_at', 'id'] },
  { table: 'builds_builders', name: 'builders_by_time', columns: ['host_id', 'created_at', 'id'] }
]

export async function up (knex: Knex): Promise<void> {
  await addIndexes(knex, INDEXES)
}

export async function down (knex: Knex): Promise<void> {
  await dropIndexes(knex, INDEXES)
}
