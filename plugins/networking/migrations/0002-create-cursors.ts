// Where the search for a free address continues: one row per host, which writers lock first.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('networking_cursors', (table) => {
    table.string('host_id', 64).primary()
    table.integer('next_position').notNullable()
    table.bigInteger('turns').notNullable().comment('how often it was locked')
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('networking_cursors')
}
