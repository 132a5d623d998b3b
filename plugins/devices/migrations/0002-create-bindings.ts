// PCI functions that were taken from their drivers, and the drivers that they go back to. A row is there before the function is taken and until it is back.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('devices_bindings', (table) => {
    table.string('host_id', 64).notNullable()
    table.string('pci_address', 16).notNullable()
    table.string('instance_id', 64).notNullable().index()
    table.string('driver', 64).nullable().comment('null: it had none')
    table.primary(['host_id', 'pci_address'])
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('devices_bindings')
}
