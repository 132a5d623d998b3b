// Who takes what of a host. Rows are written only by whoever has the host's turn; see 0002.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('resources_claims', (table) => {
    table.string('kind', 16).notNullable()
    table.string('id', 64).notNullable()
    table.string('host_id', 64).notNullable()
    table.string('name', 191).notNullable()
    table.integer('active').notNullable().comment('1: there is a VM')
    table.integer('vcpus').notNullable()
    table.bigInteger('memory_bytes').notNullable()
    table.bigInteger('disk_bytes').notNullable()
    table.bigInteger('download_bps').notNullable()
    table.bigInteger('upload_bps').notNullable()
    table.bigInteger('disk_io_bps').notNullable()
    table.primary(['kind', 'id'])
    table.index(['host_id'], 'resources_claims_host')
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('resources_claims')
}
