// Indexes for the order and the filters of lists.
import type { Knex } from 'knex'
import { addIndexes, dropIndexes, type Index } from '../../../core/db/indexes.ts'

const INDEXES: readonly Index[] = [
  { table: 'webhooks_webhooks', name: 'webhooks_by_number', columns: ['host_id', 'number'] },
  { table: 'webhooks_webhooks', name: 'webhooks_by_status', columns: ['host_id', 'status', 'number'] }
]

export async function up (knex: Knex): Promise<void> {
  await addIndexes(knex, INDEXES)
}

export async function down (knex: Knex): Promise<void> {
  await dropIndexes(knex, INDEXES)
}
