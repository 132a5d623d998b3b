// The table of builders: cache disks with a name.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('builds_builders', (table) => {
    table.string('id', 64).primary()
    table.string('host_id', 64).notNullable().index()
    table.string('status', 16).notNullable().comment('creating, ready, pruning, deleting or error')
    table.text('name')
    table.integer('disk_size_gb').notNullable()
    table.string('volume_id', 64).notNullable()
    table.text('tags', 'mediumtext').notNullable()
    table.bigInteger('created_at').notNullable()
    table.bigInteger('last_used_at')
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('builds_builders')
}
