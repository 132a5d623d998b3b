// The table of API keys; a key itself is never stored, only its SHA-256.
import type { Knex } from 'knex'

export async function up (database: Knex): Promise<void> {
  await database.schema.createTable('core_api_keys', (table) => {
    table.string('id', 32).primary()
    table.string('name', 191).notNullable()
    table.string('hash', 64).notNullable().unique()
    table.text('scopes').notNullable()
    table.bigInteger('created_at').notNullable()
    table.bigInteger('expires_at')
    table.bigInteger('revoked_at')
    table.bigInteger('last_used_at')
  })
}

export async function down (database: Knex): Promise<void> {
  await database.schema.dropTable('core_api_keys')
}
