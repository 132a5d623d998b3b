// The addresses of instances, each as long as its instance exists, with the settings of its last plug.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('networking_addresses', (table) => {
    table.string('instance_id', 64).primary()
    table.string('host_id', 64).notNullable()
    table.integer('position').notNullable().comment('place in the network of the host')
    table.string('ip', 15).notNullable()
    table.string('mac', 17).notNullable()
    table.bigInteger('created_at').notNullable()
    table.string('egress', 16).comment('null: never plugged')
    table.bigInteger('uid').comment('user of the VM')
    table.bigInteger('download_bps')
    table.bigInteger('upload_bps')
    table.integer('changing').notNullable().defaultTo(0).comment('1: connections of before are still to be ended')
    table.unique(['host_id', 'position'], { indexName: 'networking_addresses_position' })
    table.unique(['host_id', 'ip'], { indexName: 'networking_addresses_ip' })
    table.unique(['mac'], { indexName: 'networking_addresses_mac' })
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('networking_addresses')
}
