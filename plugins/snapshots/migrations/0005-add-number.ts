// In which order the snapshots of a source were made, whatever the clock said. Those of before get numbers in the order of their times.
import type { Knex } from 'knex'
import { addIndexes, dropIndexes, type Index } from '../../../core/db/indexes.ts'

const TABLE = 'snapshots_snapshots'
const INDEXES: readonly Index[] = [{ table: TABLE, name: 'snapshots_by_number', columns: ['host_id', 'source_id', 'number'] }]

interface Row { readonly id: string, readonly number: number }

export async function up (knex: Knex): Promise<void> {
  await knex.schema.alterTable(TABLE, (table) => { table.bigInteger('number').notNullable().defaultTo(0).comment('larger than that of every older snapshot of the source') })
  const ids: string[] = await knex<Row>(TABLE).orderBy([{ column: 'created_at' }, { column: 'id' }]).pluck('id')
  for (const [index, id] of ids.entries()) await knex<Row>(TABLE).where({ id }).update({ number: index + 1 })
  await addIndexes(knex, INDEXES)
}

// From whatever statement of `up` or of this was the last: on MySQL each is there by itself.
export async function down (knex: Knex): Promise<void> {
  await dropIndexes(knex, INDEXES)
  if (await knex.schema.hasColumn(TABLE, 'number')) await knex.schema.alterTable(TABLE, (table) => { table.dropColumn('number') })
}
