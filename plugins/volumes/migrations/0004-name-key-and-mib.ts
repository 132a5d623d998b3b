// Names that are taken, and sizes in MiB. Of older volumes that share a name the oldest has it; the others keep theirs without being in the way of anybody.
import type { Knex } from 'knex'

const TABLE = 'volumes_volumes'
const MIB_PER_GB = 1024

interface Row { readonly id: string, readonly host_id: string, readonly name: string, readonly size_gb: number, readonly status: string, readonly owner: string | null }

export async function up (knex: Knex): Promise<void> {
  await knex.schema.alterTable(TABLE, (table) => {
    table.string('name_key', 63).nullable().comment('the name in lower case while it is taken')
    table.integer('size_mib').nullable()
  })
  const taken = new Set<string>()
  const rows: Row[] = await knex<Row>(TABLE).orderBy([{ column: 'created_at' }, { column: 'id' }])
  for (const { id, host_id: hostId, name, size_gb: sizeGb, status, owner } of rows) {
    const key = name.toLowerCase()
    const isFirst = owner === null && status !== 'deleting' && !taken.has(`${hostId} ${key}`)
    if (isFirst) taken.add(`${hostId} ${key}`)
    await knex(TABLE).where({ id }).update({ size_mib: sizeGb * MIB_PER_GB, name_key: isFirst ? key : null })
  }
  await knex.schema.alterTable(TABLE, (table) => {
    table.unique(['host_id', 'name_key'], { indexName: 'volumes_volumes_name' })
    table.dropColumn('size_gb')
  })
}

export async function down (knex: Knex): Promise<void> {
  await knex.schema.alterTable(TABLE, (table) => {
    table.dropUnique(['host_id', 'name_key'], 'volumes_volumes_name')
    table.integer('size_gb').notNullable().defaultTo(0)
  })
  await knex(TABLE).update({ size_gb: knex.raw('(size_mib + 1023) / 1024') })
  await knex.schema.alterTable(TABLE, (table) => {
    table.dropColumn('name_key')
    table.dropColumn('size_mib')
  })
}
