// The files of an SQLite database in the data folder: it is copied, and put back, as a database and not as files.
import { relative } from 'node:path'
import { sqliteFile } from '../config/database-url.ts'
import type { Config } from '../config/schema.ts'

/** Paths below the data folder; none of a database elsewhere. */
export function databaseFiles ({ server: { dataDir }, database: { url } }: Config): ReadonlySet<string> {
  const file = sqliteFile(url, dataDir)
  if (file === undefined) return new Set()
  const inside = relative(dataDir, file)
  return new Set(inside.startsWith('..') ? [] : ['', '-wal', '-shm', '-journal'].map((suffix) => `${inside}${suffix}`))
}
