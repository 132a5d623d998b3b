// Keeps room on the disk for the rows that change while the disk is full, so that a server can start and its callers can delete things.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Knex } from 'knex'
import type { Logger } from 'pino'
import { sqliteFile } from '../config/database-url.ts'
import type { Config } from '../config/schema.ts'
import type { HostCommands } from '../contracts/services.ts'
import type { DiskSpace } from '../fs/disk-space.ts'
import { reserveFile } from './folder.ts'

const MIB = 2 ** 20
/** SQLite writes into its log first, and starts again at the log's beginning after 1,000 pages of 4 KiB, once they are in the database. */
const LOG_SUFFIX = '-wal'
const LOG_BYTES = 5 * MIB
/** name in the data folder */
export const RESERVE = 'reserve'

/**
 * Where the database cannot grow, a log that ends with one more page than it has is never brought in, and fills. So it has free pages, which rows take first. Room behind its end, allocated as that of the log is, would not stay: SQLite
 * sets the length of the file each time that it has brought its log in, and the file system gives up what is behind.
 */
const FREE_BYTES = 4 * MIB
const PIECE_BYTES = MIB
/** They must not be what fills the disk. */
const NEEDED_BYTES = 3 * FREE_BYTES
const FILLER = 'core_reserve'
const RENEWAL_MS = 60_000

export interface Reserve {
  /** Allocates the room of an open database's log, and sees from then on that the database has free pages. @returns what ends that */
  hold (database: Knex): Promise<() => Promise<void>>
  /** Keeps the room for the next server: a database that was closed in order has no log. */
  leave (): Promise<void>
}

interface ReserveParts {
  readonly commands: HostCommands
  readonly log: Logger
  readonly disk: DiskSpace
}

/** Gives up the room that the last server left, for the database that is about to be opened. Only for the holder of the data folder's lock. */
export async function openReserve ({ server: { dataDir }, database: { url } }: Config, { commands, log, disk }: ReserveParts): Promise<Reserve> {
  const file = sqliteFile(url, dataDir)
  if (file === undefined) return { hold: async () => async () => undefined, leave: async () => undefined }
  const reserve = join(dataDir, RESERVE)
  // The length stays the same, so nothing that the database has there is overwritten.
  const take = async (path: string, prepare = async (): Promise<void> => {}): Promise<void> => {
    try {
      await prepare()
      await commands.run('fallocate', ['--keep-size', '--length', String(LOG_BYTES), path])
    } catch (error) {
      // The disk is full, or the file system cannot do it: then no room is kept.
      log.debug({ err: error, file: path }, 'no room could be kept for the database')
    }
  }
  const renew = async (database: Knex): Promise<void> => {
    try {
      await addFreePages(database, disk)
    } catch (error) {
      log.debug({ err: error, file }, 'no free pages could be added to the database')
    }
  }
  await rm(reserve, { force: true })
  return {
    async hold (database) {
      await take(`${file}${LOG_SUFFIX}`)
      let renewing = renew(database)
      await renewing
      const timer = setInterval(() => { renewing = renewing.then(async () => { await renew(database) }) }, RENEWAL_MS).unref()
      return async () => {
        clearInterval(timer)
        await renewing
      }
    },
    // With --keep-size, `fallocate` makes no file.
    leave: async () => { await take(reserve, async () => { await reserveFile(reserve) }) }
  }
}

async function addFreePages (database: Knex, disk: DiskSpace): Promise<void> {
  const [pages, size] = [await database.raw('PRAGMA freelist_count'), await database.raw('PRAGMA page_size')]
  const free = Number(pages[0].freelist_count) * Number(size[0].page_size)
  if (FREE_BYTES - free < PIECE_BYTES || (await disk.free()).bytes < NEEDED_BYTES) return
  // What a kill has left. Pages of one transaction with the end of the table would not be written, and take no room.
  await database.schema.dropTableIfExists(FILLER)
  await database.schema.createTable(FILLER, (table) => { table.binary('bytes') })
  try {
    // All of them: they take the pages first that are free already.
    for (let bytes = 0; bytes < FREE_BYTES; bytes += PIECE_BYTES) await database.raw('INSERT INTO ?? VALUES (zeroblob(?))', [FILLER, PIECE_BYTES])
  } finally {
    await database.schema.dropTableIfExists(FILLER)
  }
}
