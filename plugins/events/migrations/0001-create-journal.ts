// The changes on each host, in the order of the commits, and where the journal of each host begins.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('events_hosts', (table) => {
    table.string('host_id', 64).primary()
    table.bigInteger('passed').notNullable().comment('id of the youngest event that has been removed')
  })
  await knex.schema.createTable('events_journal', (table) => {
    table.string('host_id', 64).notNullable().comment('its foreign key makes a writer hold the row of the host until its commit').references('host_id').inTable('events_hosts')
    table.bigInteger('id').notNullable().comment('microseconds since the epoch, and always more than the one before')
    table.string('resource', 32).notNullable()
    table.string('action', 16).notNullable().comment('created, updated or deleted')
    table.string('scope', 64).notNullable().comment('what a key needs to read it')
    table.text('state', 'mediumtext').notNullable().comment('of the resource after the change, as JSON')
    table.primary(['host_id', 'id'])
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTableIfExists('events_journal')
  await knex.schema.dropTableIfExists('events_hosts')
}
