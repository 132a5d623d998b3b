// The table of answers that are remembered under an Idempotency-Key.
import type { Knex } from 'knex'

export async function up (database: Knex): Promise<void> {
  await database.schema.createTable('core_idempotency', (table) => {
    table.string('id', 64).primary()
    table.string('request_hash', 64).notNullable()
    table.string('owner', 191).notNullable()
    table.integer('status')
    table.text('headers')
    table.text('body', 'mediumtext')
    table.bigInteger('created_at').notNullable()
    table.bigInteger('expires_at').notNullable().index('core_idempotency_expiry')
  })
}

export async function down (database: Knex): Promise<void> {
  await database.schema.dropTable('core_idempotency')
}
