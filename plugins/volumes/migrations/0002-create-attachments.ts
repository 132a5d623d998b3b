// Which instance has which volume: one that writes it, or any number that read it.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('volumes_attachments', (table) => {
    table.string('volume_id', 64).notNullable()
    table.string('instance_id', 64).notNullable().index()
    table.string('host_id', 64).notNullable().index()
    table.text('mount_path').notNullable()
    table.integer('readonly').notNullable()
    table.bigInteger('created_at').notNullable()
    table.primary(['volume_id', 'instance_id'])
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('volumes_attachments')
}
