// Fills a server's database with many stopped instances, as copies of one that was made through the API.
import { createId } from '@paralleldrive/cuid2'
import knex from 'knex'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { SqliteClient } from '../../core/db/sqlite-client.ts'

/** Copies the instance `id` until there are `count`. The server must not run meanwhile. */
export async function multiplyInstance (dataDir: string, id: string, count: number): Promise<void> {
  const database = knex({ client: SqliteClient, connection: { filename: join(dataDir, 'berth.db') }, useNullAsDefault: true })
  try {
    const row: unknown = await database('instances_instances').where({ id }).first()
    if (typeof row !== 'object' || row === null) throw new Error(`the instance ${id} is not in the database`)
    for (let number = 1; number < count; number++) {
      const copy = { ...row, id: createId(), name: `stored-${number}`, slot: number + 1 }
      await cp(join(dataDir, 'instances', id), join(dataDir, 'instances', copy.id), { recursive: true, filter: source => !source.endsWith('.ext4') })
      await database('instances_instances').insert(copy)
    }
  } finally {
    await database.destroy()
  }
}
