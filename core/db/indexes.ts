// Adds indexes to existing tables. On MySQL each statement of a migration is committed by itself, so each checks first whether its index exists.
import type { Knex } from 'knex'
import { dialectOf } from './open.ts'

export interface Index { readonly table: string, readonly name: string, readonly columns: readonly string[] }

export async function addIndexes (database: Knex, indexes: readonly Index[]): Promise<void> {
  for (const { table, name, columns } of indexes) {
    if (!await hasIndex(database, table, name)) await database.schema.alterTable(table, (change) => { change.index([...columns], name) })
  }
}

export async function dropIndexes (database: Knex, indexes: readonly Index[]): Promise<void> {
  for (const { table, name, columns } of indexes) {
    if (await hasIndex(database, table, name)) await database.schema.alterTable(table, (change) => { change.dropIndex([...columns], name) })
  }
}

export async function hasIndex (database: Knex, table: string, name: string): Promise<boolean> {
  if (dialectOf(database) === 'sqlite') return (await database('sqlite_master').where({ type: 'index', name })).length > 0
  const [rows] = await database.raw('SELECT 1 FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? AND index_name = ? LIMIT 1', [table, name])
  return rows.length > 0
}
