// Indexes for the order and the filters of lists.
import type { Knex } from 'knex'
import { addIndexes, dropIndexes, type Index } from '../../../core/db/indexes.ts'

const INDEXES: readonly Index[] = [
  { table: 'images_tags', name: 'images_by_name', columns: ['host_id', 'name', 'id'] },
  { table: 'images_tags', name: 'images_by_time', columns: ['host_id', 'created_at', 'id'] },
  { table: 'images_tags', name: 'images_by_digest', columns: ['host_id', 'digest'] },
  { table: 'images_tags', name: 'images_by_next_digest', columns: ['host_id', 'next_digest'] },
  { table: 'images_contents', name: 'images_contents_by_digest', columns: ['host_id', 'digest'] }
]

export async function up (knex: Knex): Promise<void> {
  await addIndexes(knex, INDEXES)
}

export async function down (knex: Knex): Promise<void> {
  await dropIndexes(knex, INDEXES)
}
