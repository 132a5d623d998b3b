// The hosts that have changes which no journal knows, since the plugin events was off.
import type { Knex } from 'knex'

export async function up (database: Knex): Promise<void> {
  await database.schema.createTable('core_unjournaled', (table) => {
    table.string('host_id', 64).primary()
  })
}

export async function down (database: Knex): Promise<void> {
  await database.schema.dropTable('core_unjournaled')
}
