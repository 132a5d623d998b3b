// Holders of contents: an instance keeps its content although the image's name has been deleted.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('images_holders', (table) => {
    table.string('content_id', 64).notNullable()
    table.string('holder', 120).notNullable()
    table.primary(['content_id', 'holder'])
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('images_holders')
}
