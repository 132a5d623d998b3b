// What lists are ordered and filtered by.
import type { Knex } from 'knex'
import { addIndexes, dropIndexes, type Index } from '../../../core/db/indexes.ts'

const INDEXES: readonly Index[] = [
  { table: 'volumes_volumes', name: 'volumes_by_time', columns: ['host_id', 'created_at', 'id'] },
  { table: 'volumes_volumes', name: 'volumes_by_name', columns: ['host_id', 'name', 'id'] },
  { table: 'volumes_volumes', name: 'volumes_by_size', columns: ['host_id', 'size_mib', 'id'] }
]

export async function up (knex: Knex): Promise<void> {
  await addIndexes(knex, INDEXES)
}

export async function down (knex: Knex): Promise<void> {
  await dropIndexes(knex, INDEXES)
}
