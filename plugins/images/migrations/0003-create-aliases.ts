// Other names of images that were pushed here: the host name that the client used.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('images_aliases', (table) => {
    table.string('id', 64).primary().comment('SHA-256 of host and alias')
    table.string('tag_id', 64).notNullable().index()
    table.string('alias', 480).notNullable()
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('images_aliases')
}
