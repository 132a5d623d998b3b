// What has been pulled: one row per manifest digest and host.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('images_contents', (table) => {
    table.string('id', 64).primary().comment('SHA-256 of host and digest')
    table.string('host_id', 64).notNullable().index()
    table.string('digest', 80).notNullable()
    table.string('repository', 400).notNullable().comment('where it comes from')
    table.string('status', 16).notNullable()
    table.text('error')
    table.string('platform', 64).notNullable()
    table.bigInteger('layer_bytes').notNullable()
    table.integer('recompress').notNullable()
    table.bigInteger('size_bytes')
    table.text('config', 'mediumtext')
    table.bigInteger('created_at').notNullable()
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('images_contents')
}
