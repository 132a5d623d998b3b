// The stored API keys; the only file that knows their table.
import type { Knex } from 'knex'

const TABLE = 'core_api_keys'

export interface ApiKeyRecord {
  readonly id: string
  readonly name: string
  readonly scopes: readonly string[]
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
  readonly created_at: number
  readonly expires_at: number | null
  readonly revoked_at: number | null
  readonly last_used_at: number | null
}

export interface ApiKeyRepository {
  insert (record: ApiKeyRecord, hash: string): Promise<void>
  findByHash (hash: string): Promise<ApiKeyRecord | undefined>
  list (): Promise<ApiKeyRecord[]>
  /** False when there is no such key that is not revoked yet. */
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
    async list () {
      return (await database<Row>(TABLE).orderBy([{ column: 'created_at' }, { column: 'id' }])).map(toRecord)
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
    scopes: parseScopes(row.scopes),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at
  }
}

function parseScopes (text: string): string[] {
  const scopes: unknown = JSON.parse(text)
  return Array.isArray(scopes) ? scopes.map(String) : []
}
