// Locks of MySQL and MariaDB that are held for longer than a piece of work takes. Each belongs to a connection of its own and ends with it, and so with the process that holds it, however that ends.
import type { Knex } from 'knex'
import { openDatabase, withoutDeadline } from './open.ts'

/** Of one purpose in one database: all databases of a server share the names, which may have 64 characters. */
const NAME = 'CONCAT(\'berth:\', MD5(CONCAT(DATABASE(), \':\', ?)))'

export class NamedLock {
  readonly #database: Knex
  readonly #session: Knex.Transaction
  readonly #purpose: string

  private constructor (database: Knex, session: Knex.Transaction, purpose: string) {
    this.#database = database
    this.#session = session
    this.#purpose = purpose
  }

  /** `undefined` when somebody else holds it for longer than `waitSeconds`. */
  static async take (url: string, purpose: string, waitSeconds: number): Promise<NamedLock | undefined> {
    const database = openDatabase(url)
    const take = async (): Promise<NamedLock | undefined> => {
      // A transaction is knex's way to stay on one connection. It reads no table, so it is in nobody's way.
      const lock = new NamedLock(database, await database.transaction(), purpose)
      let isTaken = false
      try {
        const [rows] = await lock.#session.raw(`SELECT GET_LOCK(${NAME}, ?) AS got`, [purpose, waitSeconds])
        isTaken = rows[0]?.got === 1
        return isTaken ? lock : undefined
      } finally {
        if (!isTaken) await lock.release()
      }
    }
    try {
      return waitSeconds === 0 ? await take() : await withoutDeadline(database, take)
    } catch (error) {
      await database.destroy()
      throw error
    }
  }

  /** Also keeps the connection from being closed for want of use. */
  async isHeld (): Promise<boolean> {
    return await this.#session.raw('SELECT 1').then(() => true, () => false)
  }

  async release (): Promise<void> {
    // When these fail the connection is lost, and the lock with it. Without the second one the handle would wait for its session.
    await this.#session.raw(`SELECT RELEASE_LOCK(${NAME})`, [this.#purpose]).catch(() => {})
    await this.#session.rollback().catch(() => {})
    await this.#database.destroy()
  }
}

/** Whether anybody holds it. */
export async function isLocked (database: Knex, purpose: string): Promise<boolean> {
  const [rows] = await database.raw(`SELECT IS_USED_LOCK(${NAME}) AS holder`, [purpose])
  return rows[0]?.holder != null
}
