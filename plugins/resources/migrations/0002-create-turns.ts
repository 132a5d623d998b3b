// One row per host, which a writer changes first: that is its lock on both databases, so that no two see the same room.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('resources_turns', (table) => {
    table.string('host_id', 64).primary()
    table.bigInteger('turns').notNullable()
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('resources_turns')
}
