// What lists are ordered and filtered by.
import type { Knex } from 'knex'
import { addIndexes, dropIndexes, type Index } from '../../../core/db/indexes.ts'

const INDEXES: readonly Index[] = [
  { table: 'devices_devices', name: 'devices_by_time', columns: ['host_id', 'created_at', 'id'] },
  { table: 'devices_devices', name: 'devices_by_name', columns: ['host_id', 'name', 'id'] }
]

export async function up (knex: Knex): Promise<void> {
  await addIndexes(knex, INDEXES)
}

export async function down (knex: Knex): Promise<void> {
  await dropIndexes(knex, INDEXES)
}
