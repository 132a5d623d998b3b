// By which the schedules are found whose run is due.
import type { Knex } from 'knex'
import { addIndexes, dropIndexes, type Index } from '../../../core/db/indexes.ts'

const INDEXES: readonly Index[] = [{ table: 'snapshots_schedules', name: 'snapshots_schedules_due', columns: ['host_id', 'next_run_at', 'instance_id'] }]

export async function up (knex: Knex): Promise<void> {
  await addIndexes(knex, INDEXES)
}

export async function down (knex: Knex): Promise<void> {
  await dropIndexes(knex, INDEXES)
}
