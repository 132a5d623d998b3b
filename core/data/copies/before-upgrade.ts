// Keeps a copy of a database in use before the first migration changes it: the previous version of the server refuses a database that a newer one has changed.
import type { Knex } from 'knex'
import type { Logger } from '../../contracts/services.ts'
import { pendingMigrations, type MigrationSource } from '../../db/migrate.ts'
import { NamedLock } from '../../db/named-lock.ts'
import { dialectOf } from '../../db/open.ts'
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

/** An upgrade that has begun: nobody else begins one of this database. */
export interface Upgrade {
  readonly copy: KeptCopy | undefined
  /** to be called once all is migrated, or has failed */
  end (): Promise<void>
}

/** After each such wait the log tells of it. */
const TURN_WAIT_SECONDS = 60

/** Keeps a copy of a database that is about to be upgraded. Of several hosts that share it one does so at a time: another one's copy would hold a half-upgraded database. `undefined`: there is nothing to upgrade. @param keeping `most` may be 0: then there is no copy */
export async function beginUpgrade (database: Knex, sources: readonly MigrationSource[], keeping: Keeping, log: Logger, { waitSeconds = TURN_WAIT_SECONDS } = {}): Promise<Upgrade | undefined> {
  if ((await upgradeOf(database, sources)).length === 0) return undefined
  const end = dialectOf(database) === 'sqlite' ? async () => {} : await takeTurn(keeping.url, log, waitSeconds)
  try {
    return { copy: keeping.most === 0 ? undefined : await copyBeforeUpgrade(database, sources, keeping), end }
  } catch (error) {
    await end()
    throw error
  }
}

/** Waits for as long as it takes: the turn of a server that is killed, or whose host is gone, ends with its connection. */
async function takeTurn (url: string, log: Logger, waitSeconds: number): Promise<() => Promise<void>> {
  for (;;) {
    const lock = await NamedLock.take(url, 'upgrade', waitSeconds)
    if (lock !== undefined) return async () => { await lock.release() }
    log.info({ seconds: waitSeconds }, 'the server of another host is upgrading the database: this one still waits for that')
  }
}

/** Keeps a copy before an upgrade begins. One that continues after a failure has its copy already: another one would hold a half-upgraded database. A later upgrade, while a plugin is left out for its tables, gets its own. */
async function copyBeforeUpgrade (database: Knex, sources: readonly MigrationSource[], keeping: Keeping): Promise<KeptCopy | undefined> {
  const pending = await upgradeOf(database, sources)
  if (pending.length === 0) return undefined
  const unfinished = (await listCopies(keeping.dataDir)).filter(({ open }) => open)
  if (unfinished.some((copy) => isOf(copy, pending))) return undefined
  // The oldest is what was there before all that is unfinished.
  return await keepCopy(database, keeping, { reason: `before ${pending.join(', ')}`, open: true, pending, spared: unfinished[0]?.number, without: 'Without copies an upgrade goes on with database.keepCopies: 0' })
}

/** Whether a copy was made before all of these migrations. */
function isOf (copy: KeptCopy, pending: readonly string[]): boolean {
  return copy.pending === undefined || pending.every((name) => copy.pending?.includes(name))
}
