// Keeps room on the disk for the rows that change while the disk is full, so that a server can start and its callers can delete things.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { sqliteFile } from '../config/database-url.ts'
import type { Config } from '../config/schema.ts'
import type { HostCommands } from '../contracts/services.ts'

/** SQLite writes into its log first, and starts again at the log's beginning after 1,000 pages of 4 KiB. */
const LOG_SUFFIX = '-wal'
const LOG_BYTES = 5 * 2 ** 20
const RESERVE = 'reserve'

export interface Reserve {
  /** Allocates the room of an open database's log. */
  hold (): Promise<void>
  /** Keeps the room for the next server: a database that was closed in order has no log. */
  leave (): Promise<void>
}

/** Gives up the room that the last server left, for the database that is about to be opened. Only for the holder of the data folder's lock. */
export async function openReserve ({ server: { dataDir }, database: { url } }: Config, { commands, log }: { readonly commands: HostCommands, readonly log: Logger }): Promise<Reserve> {
  const database = sqliteFile(url, dataDir)
  if (database === undefined) return { hold: async () => undefined, leave: async () => undefined }
  const reserve = join(dataDir, RESERVE)
  // The length stays the same, so nothing that the database has there is overwritten.
  const take = async (file: string): Promise<void> => {
    try {
      await commands.run('fallocate', ['--keep-size', '--length', String(LOG_BYTES), file])
    } catch (error) {
      // The disk is full, or the file system cannot do it: then no room is kept.
      log.debug({ err: error, file }, 'no room could be kept for the database')
    }
  }
  await rm(reserve, { force: true })
  return {
    hold: async () => { await take(`${database}${LOG_SUFFIX}`) },
    leave: async () => { await take(reserve) }
  }
}
