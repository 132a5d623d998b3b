// Mediated devices that were made for instances. A row is there before the device is made and until it is gone.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('devices_mdevs', (table) => {
    table.string('uuid', 36).primary()
    table.string('host_id', 64).notNullable().index()
    table.string('instance_id', 64).notNullable().unique()
    table.string('profile', 128).notNullable()
    table.string('parent', 16).notNullable().comment('PCI address of the device that it is a share of')
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('devices_mdevs')
}
