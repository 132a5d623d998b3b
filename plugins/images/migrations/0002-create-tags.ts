// The names of images, each pointing at a digest. The key is a hash: names are case-sensitive, and longer than some indexes allow.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('images_tags', (table) => {
    table.string('id', 64).primary().comment('SHA-256 of host and name')
    table.string('host_id', 64).notNullable().index()
    table.string('name', 480).notNullable()
    table.string('repository', 400).notNullable()
    table.string('digest', 80).comment('what the name means now')
    table.string('next_digest', 80).comment('what it will mean when that is ready')
    table.string('state', 16).notNullable().comment('of the last attempt to learn the digest')
    table.text('error')
    table.text('tags', 'mediumtext').notNullable()
    table.bigInteger('created_at').notNullable()
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('images_tags')
}
