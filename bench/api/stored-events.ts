// Fills a server's journal with many events, as if its instances had changed that often.
import knex from 'knex'
import { join } from 'node:path'
import { SqliteClient } from '../../core/db/sqlite-client.ts'

interface Row { readonly host_id: string, readonly id: number, readonly resource: string, readonly action: string, readonly scope: string, readonly state: string }

const JOURNAL = 'events_journal'
const ROWS_AT_ONCE = 500

/** Adds `count` updates of the instances in turn, each behind the youngest event that there is. The server must not run meanwhile. Returns the id of that event, after which a stream has all of them. */
export async function multiplyEvents (dataDir: string, count: number): Promise<string> {
  const database = knex({ client: SqliteClient, connection: { filename: join(dataDir, 'berth.db') }, useNullAsDefault: true })
  try {
    const pattern: Row | undefined = await database<Row>(JOURNAL).where({ resource: 'instance', action: 'updated' }).orderBy('id', 'desc').first()
    const youngest: Pick<Row, 'id'> | undefined = await database<Row>(JOURNAL).orderBy('id', 'desc').first('id')
    if (pattern === undefined || youngest === undefined) throw new Error('no instance of this server has changed yet')
    const instances: ReadonlyArray<{ readonly id: string, readonly name: string }> = await database('instances_instances').select('id', 'name')
    const rows = Array.from({ length: count }, (_, number): Row => ({ ...pattern, id: youngest.id + number + 1, state: JSON.stringify({ ...JSON.parse(pattern.state), ...instances[number % instances.length] }) }))
    await database.transaction(async (trx) => {
      for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) await trx<Row>(JOURNAL).insert(rows.slice(from, from + ROWS_AT_ONCE))
    })
    return String(youngest.id)
  } finally {
    await database.destroy()
  }
}
