// Writes a complete copy of the database, as of one moment, into a file; other processes may go on using the database.
import { open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Knex } from 'knex'
import type { HostCommands } from '../../contracts/services.ts'
import { syncFile } from '../../fs/durable.ts'
import { dialectOf, withoutDeadline } from '../open.ts'
import { runTool } from './dump-tool.ts'

const DUMP = ['--single-transaction', '--skip-lock-tables', '--hex-blob', '--no-tablespaces', '--skip-dump-date', '--default-character-set=utf8mb4']
/** a dump's text has at most this many bytes for each byte of the tables: numbers and bytes are written as text */
const TEXT_FACTOR = 3
const LAST_LINE = '-- Dump completed'

/** `.db`: an SQLite file; `.sql`: statements for MySQL and MariaDB */
export function copySuffix (database: Knex): '.db' | '.sql' {
  return dialectOf(database) === 'sqlite' ? '.db' : '.sql'
}

/** The size that a copy has at most. */
export async function copyBytes (database: Knex): Promise<number> {
  if (dialectOf(database) === 'sqlite') {
    const [pages, size] = [await database.raw('PRAGMA page_count'), await database.raw('PRAGMA page_size')]
    return Number(pages[0].page_count) * Number(size[0].page_size)
  }
  const [rows] = await database.raw('SELECT COALESCE(SUM(data_length + index_length), 0) AS bytes FROM information_schema.tables WHERE table_schema = DATABASE()')
  return Number(rows[0].bytes) * TEXT_FACTOR
}

/** `to` must not exist, in a folder that is for the server alone. It is on disk when this resolves; nothing is left of it when this rejects. */
export async function writeCopy (database: Knex, { url, commands, to }: { url: string, commands: HostCommands, to: string }): Promise<void> {
  await (await open(to, 'wx', 0o600)).close()
  try {
    if (dialectOf(database) === 'sqlite') await database.raw('VACUUM INTO ?', [to])
    else {
      await withoutDeadline(database, async () => { await runTool(commands, ['mariadb-dump', 'mysqldump'], { url, folder: dirname(to), args: [...DUMP, `--result-file=${to}`] }) })
      await requireWhole(to)
    }
    await syncFile(to)
  } catch (error) {
    await rm(to, { force: true })
    throw error
  }
}

async function requireWhole (path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    const { size } = await handle.stat()
    const end = Buffer.alloc(Math.min(size, 256))
    await handle.read(end, 0, end.length, size - end.length)
    if (!end.toString().includes(LAST_LINE)) throw new Error(`the dump of the database ended early, after ${size} bytes`)
  } finally {
    await handle.close()
  }
}
