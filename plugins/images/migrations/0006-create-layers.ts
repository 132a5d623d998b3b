// The layers of contents, as their manifests name them. Rows of contents that were pulled before have none, and no count.
import type { Knex } from 'knex'

const TABLE = 'images_layers'
const CONTENTS = 'images_contents'
const COUNT = 'layer_count'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable(TABLE, (table) => {
    table.string('content_id', 64).notNullable()
    table.integer('place').notNullable().comment('0 for the lowest')
    table.string('digest', 80).notNullable().index('images_layers_by_digest')
    table.string('media_type', 200)
    table.bigInteger('size_bytes').notNullable().comment('compressed')
    table.text('created_by')
    table.primary(['content_id', 'place'])
  })
  await knex.schema.alterTable(CONTENTS, (table) => { table.integer(COUNT) })
}

// From whatever statement of `up` or of this was the last: on MySQL each is there by itself. A table may lack its index yet, so it is never left.
export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTableIfExists(TABLE)
  if (await knex.schema.hasColumn(CONTENTS, COUNT)) await knex.schema.alterTable(CONTENTS, (table) => { table.dropColumn(COUNT) })
}
