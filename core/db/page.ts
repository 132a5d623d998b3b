// One page of a list. The database filters, orders and limits it, so that its cost does not depend on the number of rows.
import type { Knex } from 'knex'
import { InvalidRequest } from '../errors/common.ts'
import { unknownPlace, type Found, type Page } from '../http/list.ts'
import { dialectOf } from './open.ts'

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- what knex itself says of rows whose columns it does not know
export type Rows = Knex.QueryBuilder<any, any>

/** How the rows of a list are ordered. An index starts with the columns that all rows have in common, followed by each column and `tie`. */
export interface RowOrder<K extends string> {
  /** the columns by the names that `sort` may have */
  readonly columns: Readonly<Record<K, string>>
  /** those of the columns that may be NULL */
  readonly nullable?: readonly string[]
  /** the column that `after` refers to */
  readonly id: string
  /** orders rows that are equal otherwise: unique, never NULL */
  readonly tie: string
}

const DESCENDING = '-'
/** how many rows that may match a text are read before the exact ones are looked for */
const MOST_ALIKE = 50

/**
 * @param rows makes a query for all rows that the list may have. `filter` narrows it, and says whether few rows can be left
 * @throws invalid_request for an `after` that no row has
 */
export async function pageOf<Row, K extends string> (rows: () => Rows, filter: (query: Rows) => { readonly isNarrow: boolean }, order: RowOrder<K>, { limit, after, sort }: Required<Pick<Page<K>, 'limit' | 'sort'>> & Page<K>): Promise<Found<Row>> {
  const { column, isDescending } = readSort(order, sort)
  const query = rows()
  const { isNarrow } = filter(query)
  if (after !== undefined) goOnAfter(query, await placeOf(rows, order, column, after), { column, tie: order.tie, isDescending, isNullable: order.nullable?.includes(column) === true })
  const direction = isDescending ? 'desc' : 'asc'
  for (const by of new Set([column, order.tie])) {
    // SQLite prefers the index of the order and walks through all of it; the plus sign prevents that.
    if (isNarrow) query.orderByRaw(`+?? ${direction}`, [by])
    else query.orderBy(by, direction)
  }
  const found: Row[] = await query.limit(limit + 1)
  return { items: found.slice(0, limit), hasMore: found.length > limit }
}

/** Compares the exact text: MySQL's comparison ignores case, but uses the index. */
export function whereIs (query: Rows, column: string, value: string): void {
  query.where(column, value)
  if (dialectOf(query) === 'mysql') query.whereRaw('?? = binary ?', [column, value])
}

/** The rows with all these tags, in a column that holds tags as JSON. */
export function whereTags (query: Rows, column: string, tags: Readonly<Record<string, string>> | undefined): void {
  for (const [key, value] of Object.entries(tags ?? {})) {
    if (dialectOf(query) === 'mysql') query.whereRaw('json_contains(??, ?)', [column, JSON.stringify({ [key]: value })])
    else query.whereRaw('exists (select 1 from json_each(??) as tag where tag.key = ? and tag.value = ?)', [column, key, value])
  }
}

/** The rows that a text may mean: the one with this id, else those with this name or an id that begins with it; of many only enough to show that there are many. See `lookupStored`. */
export async function rowsAlike<Row> (rows: () => Rows, text: string, { id, name }: { readonly id: string, readonly name?: string }): Promise<Row[]> {
  const exact: Row[] = await rows().where(id, text).limit(1)
  if (exact.length > 0 || text === '') return exact
  const named: Row[] = name === undefined ? [] : await rows().where(name, text).limit(MOST_ALIKE)
  const query = rows().limit(MOST_ALIKE)
  if (dialectOf(query) === 'mysql') query.where(id, 'like', `${text.replaceAll(/[\\%_]/g, '\\$&')}%`)
  // LIKE would not use the index here.
  else query.where(id, '>=', text).where(id, '<', `${text}\u{10FFFF}`)
  // Those that the name has found already are not found again by the beginning of their id.
  if (name !== undefined) query.where((other) => { void other.whereNot(name, text).orWhereNull(name) })
  const beginning: Row[] = await query
  return [...named, ...beginning]
}

function readSort<K extends string> (order: RowOrder<K>, sort: string): { readonly column: string, readonly isDescending: boolean } {
  const isDescending = sort.startsWith(DESCENDING)
  const column: string | undefined = Object.entries<string>(order.columns).find(([name]) => name === (isDescending ? sort.slice(1) : sort))?.[1]
  if (column === undefined) throw InvalidRequest('query parameter sort: the list has no such order')
  return { column, isDescending }
}

interface Place { readonly value: string | number | null, readonly tie: string | number }

async function placeOf<K extends string> (rows: () => Rows, order: RowOrder<K>, column: string, after: string): Promise<Place> {
  const found: Array<Place & { readonly id: unknown }> = await rows().where(order.id, after).clearSelect().select({ id: order.id, value: column, tie: order.tie })
  const place = found.find(({ id }) => id === after)
  if (place === undefined) throw unknownPlace(after)
  return place
}

interface Way { readonly column: string, readonly tie: string, readonly isDescending: boolean, readonly isNullable: boolean }

/** NULL comes first on both databases. Not written as `(a, b) > (?, ?)`, for which MariaDB reads the whole index. */
function goOnAfter (query: Rows, { value, tie: last }: Place, { column, tie, isDescending, isNullable }: Way): void {
  const beyond = isDescending ? '<' : '>'
  if (column === tie) query.where(tie, beyond, last)
  else if (value === null) {
    if (isDescending) query.whereNull(column).where(tie, beyond, last)
    else query.where((either: Rows) => { either.where(tie, beyond, last).orWhereNotNull(column) })
  } else {
    const withNull = isDescending && isNullable
    query.where((either: Rows) => {
      either.where(column, `${beyond}=`, value)
      if (withNull) either.orWhereNull(column)
    }).where((either: Rows) => {
      either.where(column, beyond, value).orWhere(tie, beyond, last)
      if (withNull) either.orWhereNull(column)
    })
  }
}
