// The table of instances. Names are unique over all hosts that share the database; user slots within a host.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('instances_instances', (table) => {
    table.string('id', 32).primary()
    table.string('host_id', 64).notNullable()
    table.string('name', 63).notNullable()
    table.string('status', 16).notNullable()
    table.integer('version').notNullable()
    table.bigInteger('created_at').notNullable()
    table.string('image', 512).notNullable()
    table.string('image_digest', 128).notNullable()
    table.text('spec', 'mediumtext').notNullable()
    table.integer('slot').nullable()
    table.text('handle').nullable()
    table.bigInteger('started_at').nullable()
    table.bigInteger('running_at').nullable()
    table.bigInteger('stopped_at').nullable()
    table.integer('exit_code').nullable()
    table.text('exit_message').nullable()
    table.unique(['name'], { indexName: 'instances_name' })
    table.unique(['host_id', 'slot'], { indexName: 'instances_slot' })
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('instances_instances')
}
