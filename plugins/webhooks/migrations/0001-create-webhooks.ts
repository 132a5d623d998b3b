// The table of webhooks.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('webhooks_webhooks', (table) => {
    table.bigIncrements('number').comment('their order')
    table.string('id', 32).notNullable().unique()
    table.string('host_id', 64).notNullable().index()
    table.text('url').notNullable()
    table.text('filter', 'mediumtext').notNullable().comment('which events it wants, as JSON')
    table.text('secret').notNullable().comment('what its deliveries are signed with, sealed')
    table.string('key_id', 64).notNullable().comment('the key whose rights it has')
    table.integer('enabled').notNullable()
    table.string('status', 16).notNullable().comment('active, failing or dead')
    table.bigInteger('position').notNullable().comment('id of the event after which it goes on')
    table.integer('attempts').notNullable().comment('failures in a row')
    table.text('error').nullable()
    table.bigInteger('failed_at').nullable()
    table.bigInteger('delivered_id').nullable()
    table.bigInteger('delivered_at').nullable()
    table.bigInteger('created_at').notNullable()
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('webhooks_webhooks')
}
