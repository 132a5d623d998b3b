// Reads and writes many rows a few at a time, with a turn of the event loop for others in between: SQLite answers at once, and there may be thousands of rows.
import { setImmediate as turn } from 'node:timers/promises'
import type { Knex } from 'knex'

const ROWS_AT_ONCE = 250

/**
 * What all rows of a query stand for, in the order of a column.
 * @param query begins the query, without order and limit, for each part anew
 * @param column has another text in each of the rows
 */
export async function rowsInTurns<Row extends object, Item> (query: () => Knex.QueryBuilder, column: string & keyof Row, read: (row: Row) => Item): Promise<Item[]> {
  const items: Item[] = []
  for (let after = ''; ;) {
    const rows: Row[] = await query().where(column, '>', after).orderBy(column).limit(ROWS_AT_ONCE)
    items.push(...rows.map(read))
    if (rows.length < ROWS_AT_ONCE) return items
    after = String(rows.at(-1)?.[column])
    await turn()
  }
}

/** Writes rows, or what names them, part by part. */
export async function writeInTurns<Item> (items: readonly Item[], write: (part: readonly Item[]) => Promise<void>): Promise<void> {
  for (let from = 0; from < items.length; from += ROWS_AT_ONCE) {
    if (from > 0) await turn()
    await write(items.slice(from, from + ROWS_AT_ONCE))
  }
}
