// Names that are taken, and sizes in MiB. Of older volumes that share a name the oldest has it; the others keep theirs without being in the way of anybody.
import type { Knex } from 'knex'
import { hasIndex } from '../../../core/db/indexes.ts'
import { dialectOf } from '../../../core/db/open.ts'

const TABLE = 'volumes_volumes'
const INDEX = 'volumes_volumes_name'
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
    table.unique(['host_id', 'name_key'], { indexName: INDEX })
    table.dropColumn('size_gb')
  })
}

// From whatever statement of `up` or of this was the last: on MySQL each is there by itself.
export async function down (knex: Knex): Promise<void> {
  if (!await knex.schema.hasColumn(TABLE, 'size_mib')) return
  if (!await knex.schema.hasColumn(TABLE, 'size_gb')) await knex.schema.alterTable(TABLE, (table) => { table.integer('size_gb').notNullable().defaultTo(0) })
  await knex(TABLE).where({ size_gb: 0 }).update({ size_gb: knex.raw(`(size_mib + ${MIB_PER_GB - 1}) ${dialectOf(knex) === 'sqlite' ? '/' : 'DIV'} ${MIB_PER_GB}`) })
  if (await hasIndex(knex, TABLE, INDEX)) await knex.schema.alterTable(TABLE, (table) => { table.dropUnique(['host_id', 'name_key'], INDEX) })
  await knex.schema.alterTable(TABLE, (table) => {
    table.dropColumn('name_key')
    table.dropColumn('size_mib')
  })
}
