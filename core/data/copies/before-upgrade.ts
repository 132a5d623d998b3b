// Keeps a copy of a database in use before the first migration changes it: the previous version of the server refuses a database that a newer one has changed.
import type { Knex } from 'knex'
import { pendingMigrations, type MigrationSource } from '../../db/migrate.ts'
import { keepCopy, type Keeping } from './keep.ts'
import { listCopies, type KeptCopy } from './kept.ts'

/** A command that must not migrate found the tables of an older version. */
export class DatabaseOutdated extends Error {
  override readonly name = 'DatabaseOutdated'
}

/** The migrations that a database in use lacks; none for a new database. */
export async function upgradeOf (database: Knex, sources: readonly MigrationSource[]): Promise<string[]> {
  const states = []
  for (const source of sources) states.push({ id: source.id, ...await pendingMigrations(database, source) })
  if (states.every(({ done }) => done === 0)) return []
  return states.flatMap(({ id, pending }) => pending.map((name) => `${id}/${name}`))
}

/** Keeps a copy before an upgrade begins. An upgrade that continues after a failure has its copy already: another one would hold a half-upgraded database. */
export async function copyBeforeUpgrade (database: Knex, sources: readonly MigrationSource[], keeping: Keeping): Promise<KeptCopy | undefined> {
  const pending = await upgradeOf(database, sources)
  if (pending.length === 0) return undefined
  if ((await listCopies(keeping.dataDir)).some(({ open }) => open)) return undefined
  return await keepCopy(database, keeping, { reason: `before ${pending.join(', ')}`, open: true, without: 'Without copies an upgrade goes on with database.keepCopies: 0' })
}
