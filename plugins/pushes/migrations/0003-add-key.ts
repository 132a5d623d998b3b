// Which key asked for a push; an earlier version has stored none.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  if (await knex.schema.hasColumn('pushes_pushes', 'key_id')) return
  await knex.schema.alterTable('pushes_pushes', (table) => {
    table.string('key_id', 64).nullable()
  })
}

export async function down (knex: Knex): Promise<void> {
  if (!await knex.schema.hasColumn('pushes_pushes', 'key_id')) return
  await knex.schema.alterTable('pushes_pushes', (table) => {
    table.dropColumn('key_id')
  })
}
