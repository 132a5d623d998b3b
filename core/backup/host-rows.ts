// The rows of one host in a database that several hosts share. Only such rows stand for files of the host, so whatever others do meanwhile is of no matter to a backup of its files.
import { createHash } from 'node:crypto'
import type { Knex } from 'knex'

const HOST = 'host_id'
/** What tables look like counts for all hosts. */
const MIGRATIONS = '_migrations'

interface Column { readonly table: string, readonly name: string, readonly key: string }

/** Of MySQL and MariaDB. Rows that name no host have no files of their own: one that has to do with files changes together with a row that names their host. */
export async function checksumOfHost (database: Knex, hostId: string): Promise<string> {
  const [found] = await database.raw(`SELECT table_name AS \`table\`, column_name AS name, column_key AS \`key\`
    FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position`)
  const columns: readonly Column[] = found
  const hash = createHash('sha256')
  for (const table of new Set(columns.map((column) => column.table))) {
    const own = columns.filter((column) => column.table === table)
    const isOfHosts = own.some(({ name }) => name === HOST)
    if (!isOfHosts && !table.endsWith(MIGRATIONS)) continue
    hash.update(`${table}\n`)
    const rows = database(table).orderBy(own.filter(({ key }) => key === 'PRI').map(({ name }) => name))
    if (isOfHosts) rows.where({ [HOST]: hostId })
    // One after the other: a table may be large.
    for await (const row of rows.stream()) hash.update(`${JSON.stringify(row)}\n`)
  }
  return hash.digest('hex')
}
