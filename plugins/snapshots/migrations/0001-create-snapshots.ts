// The table of snapshots. A name is unique among those of one source; many may have none, since NULLs do not clash.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('snapshots_snapshots', (table) => {
    table.string('id', 32).primary()
    table.string('host_id', 64).notNullable().index()
    table.string('status', 16).notNullable().comment('creating, ready or deleting')
    table.string('kind', 16).notNullable()
    table.string('name', 63).nullable()
    table.string('source_id', 32).notNullable()
    table.string('source_name', 63).notNullable()
    table.string('hypervisor', 32).notNullable()
    table.string('image_digest', 128).notNullable()
    table.text('copy', 'mediumtext').nullable().comment('the InstanceCopy, once there is one')
    table.text('tags', 'mediumtext').notNullable()
    table.integer('scheduled').notNullable().comment('made by a schedule, and so subject to its retention')
    table.bigInteger('created_at').notNullable()
    table.bigInteger('disk_bytes').notNullable().comment('on disk: all but the memory')
    table.bigInteger('memory_bytes').nullable().comment('on disk, before compression')
    table.bigInteger('compressed_bytes').nullable()
    table.text('compression').nullable().comment('algorithm and level that are wanted')
    table.string('compression_state', 16).notNullable()
    table.text('compression_error').nullable()
    table.unique(['source_id', 'name'], { indexName: 'snapshots_name' })
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('snapshots_snapshots')
}
