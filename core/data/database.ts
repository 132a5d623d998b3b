// Opens the configured database with core's own tables up to date.
import type { Knex } from 'knex'
import { databaseUrl, sqliteFile } from '../config/database-url.ts'
import type { Config } from '../config/schema.ts'
import { migratePlugin, type MigrationSource } from '../db/migrate.ts'
import { openDatabase } from '../db/open.ts'
import { prepareDataFolder, reserveFile } from './folder.ts'
import { requireFinished } from './unfinished.ts'

export const CORE_MIGRATIONS: MigrationSource = { id: 'core', folder: new URL('../db/migrations/', import.meta.url) }

/**
 * Makes the data folder when it is not there, opens the database, and migrates the tables of core.
 * @param beforeChange called before that, with the database as it was found
 */
export async function openCoreDatabase ({ server: { dataDir }, database: { url } }: Config, beforeChange: (database: Knex) => Promise<void>): Promise<Knex> {
  await prepareDataFolder(dataDir)
  await requireFinished(dataDir)
  const file = sqliteFile(url, dataDir)
  if (file !== undefined) await reserveFile(file)
  const database = openDatabase(databaseUrl(url, dataDir))
  try {
    await beforeChange(database)
    await migratePlugin(database, CORE_MIGRATIONS.id, CORE_MIGRATIONS.folder)
    return database
  } catch (error) {
    await database.destroy()
    throw error
  }
}
