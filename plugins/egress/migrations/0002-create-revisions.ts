// The number of the last policy revision of each host.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('egress_revisions', (table) => {
    table.string('host_id', 64).primary()
    table.bigInteger('revision').notNullable()
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('egress_revisions')
}
