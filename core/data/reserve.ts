// Keeps room on the disk for what a full disk needs most: rows that change and go, so that a server starts there and its callers can delete things.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { sqliteFile } from '../config/database-url.ts'
import type { Config } from '../config/schema.ts'
import type { HostCommands } from '../contracts/services.ts'

/** SQLite writes into its log first, which it uses from the beginning again after 1,000 pages of 4 KiB. */
const LOG_SUFFIX = '-wal'
const LOG_BYTES = 5 * 2 ** 20
const RESERVE = 'reserve'

export interface Reserve {
  /** Gives the log of an open database its room. */
  hold (): Promise<void>
  /** Keeps the room for the next server: a database that is closed in order has no log. */
  leave (): Promise<void>
}

/** Lets go of what the last server has left, for the database that is about to be opened. Only for who has the lock of the data folder. */
export async function openReserve ({ server: { dataDir }, database: { url } }: Config, { commands, log }: { readonly commands: HostCommands, readonly log: Logger }): Promise<Reserve> {
  const database = sqliteFile(url, dataDir)
  if (database === undefined) return { hold: async () => undefined, leave: async () => undefined }
  const reserve = join(dataDir, RESERVE)
  // The length stays: nothing is written over what a database has there already.
  const take = async (file: string): Promise<void> => {
    try {
      await commands.run('fallocate', ['--keep-size', '--length', String(LOG_BYTES), file])
    } catch (error) {
      // No room, or a file system that cannot: then there is none when the disk is full.
      log.debug({ err: error, file }, 'no room could be kept for the database')
    }
  }
  await rm(reserve, { force: true })
  return {
    hold: async () => { await take(`${database}${LOG_SUFFIX}`) },
    leave: async () => { await take(reserve) }
  }
}
