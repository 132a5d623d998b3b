// The layers of contents, as their manifests name them. Rows of contents that were pulled before have none, and no count.
import type { Knex } from 'knex'

const TABLE = 'images_layers'
const CONTENTS = 'images_contents'
const COUNT = 'layer_count'

export async function up (knex: Knex): Promise<void> {
  if (!await knex.schema.hasTable(TABLE)) {
    await knex.schema.createTable(TABLE, (table) => {
      table.string('content_id', 64).notNullable()
      table.integer('place').notNullable().comment('0 for the lowest')
      table.string('digest', 80).notNullable().index('images_layers_by_digest')
      table.string('media_type', 200)
      table.bigInteger('size_bytes').notNullable().comment('compressed')
      table.text('created_by')
      table.primary(['content_id', 'place'])
    })
  }
  if (!await knex.schema.hasColumn(CONTENTS, COUNT)) await knex.schema.alterTable(CONTENTS, (table) => { table.integer(COUNT) })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.alterTable(CONTENTS, (table) => { table.dropColumn(COUNT) })
  await knex.schema.dropTable(TABLE)
}
