// What supervises an instance's life and changes by itself: its expiry, its restarts. Written as JSON.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.alterTable('instances_instances', (table) => {
    table.text('life', 'mediumtext').nullable()
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.alterTable('instances_instances', (table) => {
    table.dropColumn('life')
  })
}
