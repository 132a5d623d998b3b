// Keys can be limited to repositories, and know the key that made them. Pushing got scopes of its own: existing keys keep what they could do.
import type { Knex } from 'knex'

const TABLE = 'core_api_keys'
const GAINED = [['image:read', 'push:read'], ['image:write', 'push:write']] as const

export async function up (database: Knex): Promise<void> {
  await database.schema.alterTable(TABLE, (table) => {
    table.text('repositories')
    table.string('created_by', 32)
  })
  await rewrite(database, (scopes) => [...scopes, ...GAINED.filter(([held, gained]) => scopes.includes(held) && !scopes.includes(gained)).map(([, gained]) => gained)])
}

/** A version that does not know the limit would let a limited key write everywhere, so such keys are revoked. */
export async function down (database: Knex): Promise<void> {
  await database(TABLE).whereNotNull('repositories').whereNull('revoked_at').update({ revoked_at: Date.now() })
  await rewrite(database, (scopes) => scopes.filter((scope) => !scope.startsWith('push:') && !scope.startsWith('key:')))
  await database.schema.alterTable(TABLE, (table) => { table.dropColumns('repositories', 'created_by') })
}

async function rewrite (database: Knex, change: (scopes: readonly string[]) => readonly string[]): Promise<void> {
  const rows: ReadonlyArray<{ id: string, scopes: string }> = await database(TABLE).select('id', 'scopes')
  for (const { id, scopes } of rows) {
    const changed = JSON.stringify(change(JSON.parse(scopes)))
    if (changed !== scopes) await database(TABLE).where({ id }).update({ scopes: changed })
  }
}
