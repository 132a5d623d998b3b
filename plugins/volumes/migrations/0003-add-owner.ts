// Which plugin a volume belongs to; without one it is a caller's.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.alterTable('volumes_volumes', (table) => {
    table.string('owner', 63).nullable()
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.alterTable('volumes_volumes', (table) => {
    table.dropColumn('owner')
  })
}
