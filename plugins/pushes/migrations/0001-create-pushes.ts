// The table of pushes. It never contains credentials.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('pushes_pushes', (table) => {
    table.bigIncrements('number').comment('their order')
    table.string('id', 32).notNullable().unique()
    table.string('host_id', 64).notNullable().index()
    table.string('status', 16).notNullable().comment('queued, pushing, pushed or failed')
    table.text('image').notNullable()
    table.string('digest', 128).notNullable()
    table.text('origins', 'mediumtext').notNullable().comment('repositories that have the manifest, as JSON')
    table.text('target').notNullable()
    table.text('destination').notNullable().comment('the target, with localhost for the built-in registry')
    table.integer('insecure').notNullable()
    table.integer('is_lent').notNullable().comment('a caller has lent credentials for it')
    table.integer('layers').nullable()
    table.bigInteger('bytes').nullable()
    table.text('error').nullable()
    table.bigInteger('created_at').notNullable()
    table.bigInteger('completed_at').nullable()
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('pushes_pushes')
}
