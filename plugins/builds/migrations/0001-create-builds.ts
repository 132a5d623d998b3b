// The table of builds. A build's order and log are in its folder.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('builds_builds', (table) => {
    table.string('id', 64).primary()
    table.string('host_id', 64).notNullable()
    table.string('status', 16).notNullable().comment('queued, building, pushing, ready, failed or cancelled')
    table.string('builder_id', 64)
    table.string('instance_id', 64)
    table.text('image_ref')
    table.string('image_digest', 80)
    table.text('error', 'mediumtext')
    table.text('provenance', 'mediumtext').notNullable()
    table.text('tags', 'mediumtext').notNullable()
    table.bigInteger('created_at').notNullable()
    table.bigInteger('started_at')
    table.bigInteger('completed_at')
    table.index(['host_id', 'created_at'])
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('builds_builds')
}
