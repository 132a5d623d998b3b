// The table of registered devices. `name_key` is the name in lower case, since one database tells case apart and the other does not; `turns` is written by whoever is about to
// attach one, which makes those who want devices of one group take turns.
import type { Knex } from 'knex'

export async function up (knex: Knex): Promise<void> {
  await knex.schema.createTable('devices_devices', (table) => {
    table.string('id', 64).primary()
    table.string('host_id', 64).notNullable()
    table.string('name', 63).notNullable()
    table.string('name_key', 63).notNullable().unique()
    table.string('type', 8).notNullable().comment('gpu or pci')
    table.string('pci_address', 16).notNullable()
    table.string('vendor_id', 4).notNullable()
    table.string('device_id', 4).notNullable()
    table.integer('iommu_group').notNullable().comment('as it was last seen')
    table.text('tags', 'mediumtext').notNullable()
    table.bigInteger('created_at').notNullable()
    table.string('instance_id', 64).nullable().index().comment('whose it is')
    table.bigInteger('turns').notNullable().comment('how often it was locked')
    table.unique(['host_id', 'pci_address'], { indexName: 'devices_address' })
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.dropTable('devices_devices')
}
