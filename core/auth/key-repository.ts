// The stored API keys; the only file that knows their table.
import type { Knex } from 'knex'
import { pageOf, rowsAlike, whereIs, type RowOrder } from '../db/page.ts'
import type { Found, WholePage } from '../http/list.ts'
import type { KeyStatus } from './status.ts'

const TABLE = 'core_api_keys'
/** how many ids one query holds at most */
const ID_BATCH = 500
const ORDER = { columns: { created_at: 'created_at', name: 'name' }, id: 'id', tie: 'id' } as const satisfies RowOrder<string>

export type KeyPage = WholePage<keyof typeof ORDER.columns>

export interface KeyFilter { readonly name?: string, readonly status?: KeyStatus }

export interface ApiKeyRecord {
  readonly id: string
  readonly name: string
  readonly scopes: readonly string[]
  /** where it may write images; null: everywhere */
  readonly repositories: readonly string[] | null
  /** id of the key that made it; null: made by the command line, or by the server itself */
  readonly createdBy: string | null
  /** ms since the epoch, like every time here */
  readonly createdAt: number
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  readonly lastUsedAt: number | null
}

interface Row {
  readonly id: string
  readonly name: string
  readonly hash: string
  readonly scopes: string
  readonly repositories: string | null
  readonly created_by: string | null
  readonly created_at: number
  readonly expires_at: number | null
  readonly revoked_at: number | null
  readonly last_used_at: number | null
}

export interface ApiKeyRepository {
  insert (record: ApiKeyRecord, hash: string): Promise<void>
  findByHash (hash: string): Promise<ApiKeyRecord | undefined>
  find (id: string): Promise<ApiKeyRecord | undefined>
  /** Oldest first. */
  list (): Promise<ApiKeyRecord[]>
  page (filter: KeyFilter, page: KeyPage, now: number): Promise<Found<ApiKeyRecord>>
  /** The keys that a text may mean: an id or its beginning. */
  alike (text: string): Promise<ApiKeyRecord[]>
  /** Those of these ids that are revoked or have expired by `now`. */
  ended (ids: readonly string[], now: number): Promise<string[]>
  /** False when no key with this id is there, or it is revoked already. */
  revoke (id: string, at: number): Promise<boolean>
  /** Notes uses, by id; an older time never replaces a newer one. */
  touch (lastUsed: ReadonlyMap<string, number>): Promise<void>
}

export function createApiKeyRepository (database: Knex): ApiKeyRepository {
  return {
    async insert (record, hash) {
      await database<Row>(TABLE).insert({
        id: record.id,
        name: record.name,
        hash,
        scopes: JSON.stringify(record.scopes),
        repositories: record.repositories === null ? null : JSON.stringify(record.repositories),
        created_by: record.createdBy,
        created_at: record.createdAt,
        expires_at: record.expiresAt,
        revoked_at: record.revokedAt,
        last_used_at: record.lastUsedAt
      })
    },
    async findByHash (hash) {
      const row = await database<Row>(TABLE).where({ hash }).first()
      return row === undefined ? undefined : toRecord(row)
    },
    async find (id) {
      const row = await database<Row>(TABLE).where({ id }).first()
      return row === undefined ? undefined : toRecord(row)
    },
    async ended (ids, now) {
      const ended: string[] = []
      for (let from = 0; from < ids.length; from += ID_BATCH) {
        const rows = await database<Row>(TABLE).select('id').whereIn('id', ids.slice(from, from + ID_BATCH))
          .andWhere((query) => { void query.whereNotNull('revoked_at').orWhere('expires_at', '<=', now) })
        ended.push(...rows.map(({ id }) => id))
      }
      return ended
    },
    async list () {
      return (await database<Row>(TABLE).orderBy([{ column: 'created_at' }, { column: 'id' }])).map(toRecord)
    },
    async page ({ name, status }, page, now) {
      const found = await pageOf<Row, keyof typeof ORDER.columns>(() => database<Row>(TABLE), (query) => {
        if (name !== undefined) whereIs(query, 'name', name)
        // The same rules as in keyStatus.
        if (status !== undefined) query[status === 'revoked' ? 'whereNotNull' : 'whereNull']('revoked_at')
        if (status === 'expired') query.where('expires_at', '<=', now)
        if (status === 'active') query.where((still: Knex.QueryBuilder) => { void still.whereNull('expires_at').orWhere('expires_at', '>', now) })
        return { isNarrow: name !== undefined }
      }, ORDER, page)
      return { ...found, items: found.items.map(toRecord) }
    },
    async alike (text) {
      return (await rowsAlike<Row>(() => database<Row>(TABLE), text, { id: 'id' })).map(toRecord)
    },
    async revoke (id, at) {
      return await database<Row>(TABLE).where({ id }).whereNull('revoked_at').update({ revoked_at: at }) > 0
    },
    async touch (lastUsed) {
      for (const [id, at] of lastUsed) {
        await database<Row>(TABLE).where({ id })
          .andWhere((query) => { void query.whereNull('last_used_at').orWhere('last_used_at', '<', at) })
          .update({ last_used_at: at })
      }
    }
  }
}

function toRecord (row: Row): ApiKeyRecord {
  return {
    id: row.id,
    name: row.name,
    scopes: parseList(row.scopes),
    repositories: row.repositories === null ? null : parseList(row.repositories),
    createdBy: row.created_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at
  }
}

function parseList (text: string): string[] {
  const list: unknown = JSON.parse(text)
  return Array.isArray(list) ? list.map(String) : []
}
