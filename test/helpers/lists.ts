// What a plugin says of its lists, as `lists.ts` in the folder of its tests, so that test/core/db/page.long.test.ts sees how the database answers them.
import type { Knex } from 'knex'
import { existsSync } from 'node:fs'
import type { Journal } from '../../core/db/changes.ts'
import type { Found } from '../../core/http/list.ts'
import { builtInFolder, findBuiltIns } from '../../core/plugins/discover.ts'

export interface Wanted { readonly limit: number, readonly after?: string }

export type LongList = readonly [name: string, page: (wanted: Wanted) => Promise<Found<{ readonly id: string } | { readonly name: string }>>]
/** what finds one thing, and the index that it must use */
export type Single = readonly [name: string, find: () => Promise<readonly unknown[]>, mustUse?: RegExp]

export interface ShortItem { readonly id: string, readonly name?: string | null, readonly status?: string, readonly createdAt: number }
/** with how many of `count` rows are in it, what they are ordered by, and whether it may be sorted */
export type ShortList = readonly [name: string, share: number, page: (wanted: Wanted) => Promise<Found<ShortItem>>, key: (item: ShortItem) => string | number | null | undefined, maySort?: boolean]

interface Lists<L> { readonly lists: readonly L[], readonly single: readonly Single[] }

export interface ListsOfPlugin {
  readonly manifest: { readonly id: string, readonly migrations: URL }
  /** of a host with very many rows: those of bench/lists/rows.ts */
  readonly long?: { readonly tables: readonly string[], of (database: Knex, hostId: string): Lists<LongList> }
  /** of one with few, which it stores itself */
  readonly short?: { readonly tables: readonly string[], store (database: Knex, hostId: string, count: number): Promise<void>, of (database: Knex, hostId: string): Lists<ShortList> }
}

/** Those of the plugins that are there. */
export async function listsOfPlugins (): Promise<readonly ListsOfPlugin[]> {
  const files = [...(await findBuiltIns(builtInFolder)).keys()].map((id) => new URL(`../plugins/${id}/lists.js`, import.meta.url)).filter((file) => existsSync(file))
  return await Promise.all(files.map(async ({ href }) => (await import(href) as { readonly lists: ListsOfPlugin }).lists))
}

/** Nothing is changed here. */
export const UNREAD: Journal = { know: () => {}, write: async () => {}, progress: () => {} }

/** Of row `index` of a short list: ids are in another order than times and names. */
export const commonOf = (hostId: string, count: number, index: number) => ({ id: `${hostId}-${padded((index * 7) % count)}`, host_id: hostId, created_at: 1000 + index })

export function padded (index: number): string {
  return String(index).padStart(3, '0')
}
