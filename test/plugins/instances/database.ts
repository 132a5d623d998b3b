// The database of a server that is not running, for tests that put rows into it as a crash would have left them.
import { join } from 'node:path'
import type { Knex } from 'knex'
import { openDatabase as open } from '../../../core/db/open.ts'

export async function openDatabase (dataDir: string): Promise<Knex> {
  return open(`sqlite:${join(dataDir, 'berth.db')}`)
}
