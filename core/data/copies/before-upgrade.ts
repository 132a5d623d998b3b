// Before the first migration changes a database that is in use, a copy of it is kept: the version that was there before refuses the newer one.
import type { Knex } from 'knex'
import { pendingMigrations, type MigrationSource } from '../../db/migrate.ts'
import { keepCopy, type Keeping } from './keep.ts'
import { listCopies, type KeptCopy } from './kept.ts'

/** A command that changes no tables met those of an older version. */
export class DatabaseOutdated extends Error {
  override readonly name = 'DatabaseOutdated'
}

/** The migrations that a database lacks which has others already; none for a new one. */
export async function upgradeOf (database: Knex, sources: readonly MigrationSource[]): Promise<string[]> {
  const states = []
  for (const source of sources) states.push({ id: source.id, ...await pendingMigrations(database, source) })
  if (states.every(({ done }) => done === 0)) return []
  return states.flatMap(({ id, pending }) => pending.map((name) => `${id}/${name}`))
}

/** Keeps a copy when an upgrade is about to begin. One that goes on after a failure has its copy: a further one would hold half of it. */
export async function copyBeforeUpgrade (database: Knex, sources: readonly MigrationSource[], keeping: Keeping): Promise<KeptCopy | undefined> {
  const pending = await upgradeOf(database, sources)
  if (pending.length === 0) return undefined
  if ((await listCopies(keeping.dataDir)).some(({ open }) => open)) return undefined
  return await keepCopy(database, keeping, { reason: `before ${pending.join(', ')}`, open: true })
}
