// Pages, orders and tag filters, the same for every list. The database pages lists of rows (core/db/page.ts); `paginate` pages lists that are in memory anyway.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type, type TUnsafe } from 'typebox'
import { InvalidRequest } from '../errors/common.ts'

/** The size of a page. The official SDKs do not page: a host that they are used on must fit one page. */
const PAGE_SIZE = { standard: 1000, largest: 1000 }

/** The order of a list; with `-` in front, the largest comes first. */
export type Sort<K extends string> = K | `-${K}`

export interface Page<K extends string = string> { readonly limit?: number, readonly after?: string, readonly sort?: Sort<K> }

/** A page with its defaults filled in. */
export interface WholePage<K extends string = string> { readonly limit: number, readonly after?: string, readonly sort: Sort<K> }

export interface Found<T> { readonly items: readonly T[], readonly hasMore: boolean }

/** An order of items in memory. */
export type Orders<K extends string, T> = Readonly<Record<K, (item: T) => string | number>>

/**
 * Query fields of a list, to be spread into the route's query object.
 * @param keys what the list can be ordered by
 * @param standard its order by default
 */
export function listQuery<const K extends string> (keys: readonly K[], standard: Sort<K>) {
  const orders = keys.flatMap((key): Array<Sort<K>> => [key, `-${key}`])
  const sort: TUnsafe<Sort<K>> = Type.Unsafe<Sort<K>>({ type: 'string', enum: orders, default: standard, description: 'What the list is ordered by; with a dash in front, the largest or newest first' })
  return {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: PAGE_SIZE.largest, default: PAGE_SIZE.standard, description: 'At most this many items; when there are more, the header `Link` leads to them' })),
    after: Type.Optional(Type.String({ minLength: 1, maxLength: 512, description: 'The id of the item after which the list goes on' })),
    sort: Type.Optional(sort)
  }
}

/** Query field of a list that can be filtered by names. */
export const NameQuery = { name: Type.Optional(Type.String({ maxLength: 512, description: 'Only what has exactly this name' })) }

/** Query field of a list that can be filtered by tags: `?tags[team]=backend&tags[env]=prod`; all must match. */
export const TagsQuery = {
  tags: Type.Optional(Type.Unsafe<Record<string, string>>({
    type: 'object',
    maxProperties: 50,
    additionalProperties: { type: 'string' },
    description: 'Only items that have all these tags'
  }))
}

/** The page that a query asks for. The validator fills in its defaults, from the document. */
export function wantedPage<K extends string> ({ limit = PAGE_SIZE.standard, after, sort }: Page<K>): WholePage<K> {
  if (sort === undefined) throw new Error('the query of a list was not checked by listQuery')
  return { limit, sort, ...after === undefined ? {} : { after } }
}

/** Cuts a page out of items that are filtered and in the order of their creation. @throws invalid_request when no item has the id `after` */
export function paginate<T, K extends string> (items: readonly T[], page: WholePage<K>, idOf: (item: T) => string, orders: Orders<K, T>): Found<T> {
  const sorted = inOrder(items, page.sort, orders)
  const from = page.after === undefined ? 0 : sorted.findIndex((item) => idOf(item) === page.after) + 1
  if (page.after !== undefined && from === 0) throw unknownPlace(page.after)
  return { items: sorted.slice(from, from + page.limit), hasMore: from + page.limit < sorted.length }
}

/** The items, with `Link: <…>; rel="next"` set when more follow. */
export function answerPage<T> ({ items, hasMore }: Found<T>, idOf: (item: T) => string, request: FastifyRequest, reply: FastifyReply): readonly T[] {
  const last = items.at(-1)
  if (last !== undefined && hasMore) reply.header('link', `<${nextUrl(request.url, idOf(last))}>; rel="next"`)
  return items
}

/** Continuing after an unknown item would skip or repeat items silently. */
export function unknownPlace (after: string): Error {
  return InvalidRequest(`query parameter after: no item of this list has the id ${after}`)
}

/** Whether `tags` holds every wanted pair. */
export function matchesTags (tags: Readonly<Record<string, string>> | null | undefined, wanted: Readonly<Record<string, string>> | undefined): boolean {
  if (wanted === undefined) return true
  return Object.entries(wanted).every(([key, value]) => tags != null && Object.hasOwn(tags, key) && tags[key] === value)
}

function inOrder<T, K extends string> (items: readonly T[], sort: Sort<K>, orders: Orders<K, T>): readonly T[] {
  if (sort === 'created_at') return items
  if (sort === '-created_at') return items.toReversed()
  const isDescending = sort.startsWith('-')
  const key = Object.entries<(item: T) => string | number>(orders).find(([name]) => name === (isDescending ? sort.slice(1) : sort))?.[1]
  if (key === undefined) throw new Error(`a list cannot be ordered by ${sort}`)
  const keyed = items.map((item) => ({ item, by: key(item) })).sort((a, b) => a.by < b.by ? -1 : a.by > b.by ? 1 : 0).map(({ item }) => item)
  return isDescending ? keyed.reverse() : keyed
}

// A relative reference: the server does not know under which name a client reached it.
function nextUrl (url: string, after: string): string {
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1))
  query.set('after', after)
  return `${path}?${query.toString()}`
}
