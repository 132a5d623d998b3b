// Makes the URL of the database complete, given the data folder, and finds what no schema can say about it.
import { isAbsolute, join } from 'node:path'
import type { ConfigProblem } from './problems.ts'
import type { Config } from './schema.ts'

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

/** Why a URL that the schema allows cannot be opened. The sentences do not show it, since it may hold a password. */
export function databaseProblems ({ url }: Config['database']): ConfigProblem[] {
  if (url.startsWith(SQLITE)) return []
  const path = ['database', 'url']
  try {
    const { username, password, pathname } = new URL(url)
    const [, , name] = [username, password, pathname.slice(1)].map(decodeURIComponent)
    return name === '' ? [{ path, rule: 'lacks the name of the database, as in mysql://user:password@host:port/name' }] : []
  } catch {
    return [{ path, rule: 'cannot be read: in user and password each of # / ? @ : % must be written as a percent sign and two digits, as %23 for #' }]
  }
}
