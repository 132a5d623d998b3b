// When an instance's memory image was made; the image itself is in its folder.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.alterTable('instances_instances', (table) => {
    table.bigInteger('standby_at').nullable()
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.alterTable('instances_instances', (table) => {
    table.dropColumn('standby_at')
  })
}
