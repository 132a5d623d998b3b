// Hosts may share a MySQL or MariaDB database, and each server of theirs holds a lock there for as long as it runs: what replaces the rows of all hosts asks for those of the others.
import type { Knex } from 'knex'
import type { Logger } from '../contracts/services.ts'
import { withMigrationLock } from '../db/migration-lock.ts'
import { isLocked, NamedLock } from '../db/named-lock.ts'
import { dialectOf, openDatabase } from '../db/open.ts'

/** A lost connection is not noticed otherwise. */
const LOOK_MS = 10_000

/** The server of another host uses the database. */
export class DatabaseInUse extends Error {
  override readonly name = 'DatabaseInUse'
}

/** That the server of one host runs. */
export class RunningHost {
  readonly #url: string
  readonly #purpose: string
  readonly #log: Logger
  readonly #looking: NodeJS.Timeout
  #lock: NamedLock | undefined
  #looked: Promise<void>

  /** Returns at once; it is seen when `shown` has resolved. */
  constructor (url: string, hostId: string, log: Logger, { lookMs = LOOK_MS } = {}) {
    this.#url = url
    this.#purpose = purposeOf(hostId)
    this.#log = log
    this.#looked = this.#look()
    this.#looking = setInterval(() => { this.#looked = this.#looked.then(async () => { await this.#look() }) }, lookMs).unref()
  }

  /** Never rejects. */
  async shown (): Promise<void> {
    await this.#looked
  }

  async end (): Promise<void> {
    clearInterval(this.#looking)
    await this.#looked
    await this.#lock?.release()
  }

  /** Never rejects: a server does not depend on being seen. */
  async #look (): Promise<void> {
    try {
      if (this.#lock !== undefined && await this.#lock.isHeld()) return
      await this.#lock?.release()
      this.#lock = undefined
      // Nobody has it unless a connection of before is not known to be lost yet.
      this.#lock = await NamedLock.take(this.#url, this.#purpose, 0)
    } catch (error) {
      this.#log.debug({ err: error }, 'the database could not be told that this server runs; it is tried again')
    }
  }
}

/**
 * Runs `work`, which replaces what all hosts have in a database, while the server of no other one runs or starts. On SQLite, which hosts do not share, it just runs.
 * @param own the id of this host, whose data folder is locked; absent: it has none yet
 * @throws DatabaseInUse
 */
export async function withoutOtherHosts<T> (url: string, own: string | undefined, work: () => Promise<T>): Promise<T> {
  const database = openDatabase(url)
  try {
    if (dialectOf(database) === 'sqlite') return await work()
    // Whoever starts shows itself before it asks for this lock, and waits for it.
    return await withMigrationLock(database, async () => {
      for (const id of await hostsOf(database)) {
        if (id !== own && await isLocked(database, purposeOf(id))) throw new DatabaseInUse(`the server of host ${id} (the content of host-id in its data folder) uses the database, and its rows would be replaced, too: stop that server first`)
      }
      return await work()
    })
  } finally {
    await database.destroy()
  }
}

/** The hosts that have rows in the database: a server that has run has some. */
async function hostsOf (database: Knex): Promise<string[]> {
  const [tables] = await database.raw('SELECT table_name AS name FROM information_schema.columns WHERE table_schema = DATABASE() AND column_name = \'host_id\'')
  const found = new Set<string>()
  for (const { name } of tables) for (const row of await database(name).distinct('host_id')) found.add(row.host_id)
  return [...found]
}

function purposeOf (hostId: string): string {
  return `host ${hostId}`
}
