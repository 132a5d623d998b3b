// Opens the configured database with core's own tables up to date.
import type { Knex } from 'knex'
import { databaseUrl, sqliteFile } from '../config/database-url.ts'
import type { Config } from '../config/schema.ts'
import { migratePlugin } from '../db/migrate.ts'
import { openDatabase } from '../db/open.ts'
import { prepareDataFolder, reserveFile } from './folder.ts'

const coreMigrations = new URL('../db/migrations/', import.meta.url)

/** Makes the data folder when it is not there, opens the database, and migrates the tables of core. */
export async function openCoreDatabase ({ server: { dataDir }, database: { url } }: Config): Promise<Knex> {
  await prepareDataFolder(dataDir)
  const file = sqliteFile(url, dataDir)
  if (file !== undefined) await reserveFile(file)
  const database = openDatabase(databaseUrl(url, dataDir))
  try {
    await migratePlugin(database, 'core', coreMigrations)
    return database
  } catch (error) {
    await database.destroy()
    throw error
  }
}
