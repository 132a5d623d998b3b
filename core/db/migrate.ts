// Brings one plugin's tables up to date. Each plugin has its own record of migrations, so turning one off disturbs no other.
// Not knex's own migrator: its lock outlives a killed process, and on MySQL it cannot go on after a kill within a migration.
import { readdir } from 'node:fs/promises'
import type { Knex } from 'knex'
import { withMigrationLock } from './migration-lock.ts'

interface Migration {
  up (database: Knex): Promise<unknown>
  down (database: Knex): Promise<unknown>
}
interface Recorded { readonly name: string, readonly state: 'running' | 'done' }

export interface MigrationSource {
  readonly id: string
  readonly folder: URL
}

/** What `migratePlugin` would do. It changes nothing. Nothing is pending where the folder cannot be read: `migratePlugin` refuses that, and whoever calls it knows whose it is. */
export async function pendingMigrations (database: Knex, { id, folder }: MigrationSource): Promise<{ readonly done: number, readonly pending: readonly string[] }> {
  const table = tableOf(id)
  const recorded = await database.schema.hasTable(table) ? await readRecord(database, table) : []
  const done = recorded.filter(({ state }) => state === 'done').map(({ name }) => name)
  return { done: done.length, pending: (await migrationNames(folder).catch(() => [])).filter((name) => !done.includes(name)) }
}

/** Runs the migrations in `folder` that this database has not seen, in the order of their names. Safe beside other processes and after a kill. */
export async function migratePlugin (database: Knex, pluginId: string, folder: URL): Promise<void> {
  const names = await migrationNames(folder)
  await withMigrationLock(database, async (connection) => {
    const table = await prepareTable(connection, pluginId)
    const recorded = await readRecord(connection, table)
    const unknown = recorded.map(({ name }) => name).filter((name) => !names.includes(name))
    if (unknown.length > 0) {
      throw new Error(`the database has migrations of ${pluginId} that this version does not know (${unknown.join(', ')}): it was used by a newer version; "berth restore-database" of that version brings back what was there before`)
    }
    for (const name of names) {
      const state = recorded.find((row) => row.name === name)?.state
      if (state !== 'done') await apply(connection, table, await load(folder, name), name, state === 'running')
    }
  })
}

/** Reverts every migration of a plugin, last first. For tests and for removing a plugin with its data. */
export async function revertPlugin (database: Knex, pluginId: string, folder: URL): Promise<void> {
  await withMigrationLock(database, async (connection) => {
    const table = await prepareTable(connection, pluginId)
    for (const { name } of (await readRecord(connection, table)).reverse()) {
      await (await load(folder, name)).down(connection)
      await connection(table).where({ name }).delete()
    }
  })
}

async function apply (connection: Knex, table: string, migration: Migration, name: string, interrupted: boolean): Promise<void> {
  // On SQLite all of it is one transaction. MySQL commits each DDL statement by itself: the state `running` says that a
  // process died in the migration, and since a migration is one change, reverting what was done of it makes it repeatable.
  if (interrupted) await takeBack(connection, migration)
  else await connection(table).insert({ name, state: 'running', applied_at: Date.now() })
  await migration.up(connection)
  await connection(table).where({ name }).update({ state: 'done', applied_at: Date.now() })
}

async function takeBack (connection: Knex, migration: Migration): Promise<void> {
  try {
    await migration.down(connection)
  } catch (error) {
    // The change was not made at all: there is nothing to revert.
    const absent = ['ER_BAD_TABLE_ERROR', 'ER_NO_SUCH_TABLE', 'ER_CANT_DROP_FIELD_OR_KEY', 'ER_BAD_FIELD_ERROR', 'ER_KEY_DOES_NOT_EXITS']
    if (!(error instanceof Error && 'code' in error && absent.includes(String(error.code)))) throw error
  }
}

async function prepareTable (connection: Knex, pluginId: string): Promise<string> {
  const table = tableOf(pluginId)
  if (!await connection.schema.hasTable(table)) {
    await connection.schema.createTable(table, (columns) => {
      columns.string('name', 191).primary()
      columns.string('state', 16).notNullable()
      columns.bigInteger('applied_at').notNullable()
    })
  }
  return table
}

function tableOf (pluginId: string): string {
  return `${pluginId.replaceAll('-', '_')}_migrations`
}

async function readRecord (connection: Knex, table: string): Promise<Recorded[]> {
  return connection(table).select<Recorded[]>('name', 'state').orderBy('name')
}

async function migrationNames (folder: URL): Promise<string[]> {
  const files = await readdir(folder)
  return files.filter((file) => file.endsWith('.js')).map((file) => file.slice(0, -'.js'.length)).sort()
}

async function load (folder: URL, name: string): Promise<Migration> {
  const base = folder.href.endsWith('/') ? folder.href : `${folder.href}/`
  const loaded: unknown = await import(new URL(`${name}.js`, base).href)
  if (!isMigration(loaded)) throw new Error(`migration ${name} does not export the functions up and down`)
  return loaded
}

function isMigration (value: unknown): value is Migration {
  return typeof value === 'object' && value !== null && 'up' in value && typeof value.up === 'function' && 'down' in value && typeof value.down === 'function'
}
