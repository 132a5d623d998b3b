// The table of volumes. `turns` is written by whoever is about to attach or delete one, which makes them take turns.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('volumes_volumes', (table) => {
    table.string('id', 64).primary()
    table.string('host_id', 64).notNullable().index()
    table.string('status', 16).notNullable().comment('creating, ready or deleting')
    table.string('name', 63).notNullable()
    table.integer('size_gb').notNullable()
    table.text('tags', 'mediumtext').notNullable()
    table.bigInteger('created_at').notNullable()
    table.bigInteger('generation').notNullable().comment('how often it was attached to a writer')
    table.bigInteger('turns').notNullable().comment('how often it was locked')
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('volumes_volumes')
}
