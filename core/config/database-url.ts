// Makes the URL of the database complete, given the data folder.
import { isAbsolute, join } from 'node:path'

const SQLITE = 'sqlite:'

/** The URL with a relative SQLite path made absolute: it is relative to the data folder. */
export function databaseUrl (url: string, dataDir: string): string {
  const path = sqliteFile(url, dataDir)
  return path === undefined ? url : `${SQLITE}${path}`
}

/** The file of an SQLite database; `undefined` for other databases and for one in memory. */
export function sqliteFile (url: string, dataDir: string): string | undefined {
  if (!url.startsWith(SQLITE) || url === `${SQLITE}:memory:`) return undefined
  const path = url.slice(SQLITE.length)
  return isAbsolute(path) ? path : join(dataDir, path)
}
