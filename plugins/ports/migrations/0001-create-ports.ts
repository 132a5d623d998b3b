// Which port of the host leads to which port of which instance.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('ports_ports', (table) => {
    table.string('id', 64).primary()
    table.string('host_id', 64).notNullable()
    table.string('instance_id', 64).notNullable()
    table.string('protocol', 3).notNullable()
    table.string('address', 15).notNullable().comment('of the host; 0.0.0.0: all')
    table.integer('host_port').notNullable()
    table.integer('instance_port').notNullable()
    table.bigInteger('created_at').notNullable()
    table.unique(['host_id', 'protocol', 'host_port', 'address'], { indexName: 'ports_place' })
    table.index(['host_id', 'instance_id'], 'ports_instance')
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('ports_ports')
}
