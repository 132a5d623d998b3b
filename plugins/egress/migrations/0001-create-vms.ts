// The VMs that have a policy, with the epoch under which the proxy knows each of them.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('egress_vms', (table) => {
    table.string('instance_id', 64).primary()
    table.string('host_id', 64).notNullable()
    table.string('address', 15).notNullable()
    table.string('epoch', 64).notNullable().comment('another one for each machine that this instance has been')
    table.bigInteger('created_at').notNullable()
    table.index(['host_id'], 'egress_vms_host')
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('egress_vms')
}
