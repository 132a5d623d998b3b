// The table of snapshot schedules: at most one for each instance, which may be gone already.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('snapshots_schedules', (table) => {
    table.string('instance_id', 32).primary()
    table.string('host_id', 64).notNullable().index().comment('who runs it: the host of the instance')
    table.string('run_interval', 64).notNullable().comment('Go duration, as it was written')
    table.integer('max_count').nullable()
    table.string('max_age', 64).nullable().comment('Go duration, as it was written')
    table.string('name_prefix', 47).nullable()
    table.text('metadata', 'mediumtext').notNullable()
    table.bigInteger('next_run_at').notNullable()
    table.bigInteger('last_run_at').nullable()
    table.string('last_snapshot_id', 32).nullable()
    table.text('last_error').nullable()
    table.bigInteger('created_at').notNullable()
    table.bigInteger('updated_at').notNullable()
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('snapshots_schedules')
}
