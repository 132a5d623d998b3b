// Indexes for the orders and filters of lists.
import type { Knex } from 'knex'
import { addIndexes, dropIndexes, type Index } from '../indexes.ts'

const INDEXES: readonly Index[] = [
  { table: 'core_api_keys', name: 'core_api_keys_by_time', columns: ['created_at', 'id'] },
  { table: 'core_api_keys', name: 'core_api_keys_by_name', columns: ['name', 'id'] }
]

export async function up (knex: Knex): Promise<void> {
  await addIndexes(knex, INDEXES)
}

export async function down (knex: Knex): Promise<void> {
  await dropIndexes(knex, INDEXES)
}
