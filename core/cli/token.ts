// `berth token create|list|revoke`: works on the API keys in the database directly, whether or not the server runs.
import { parseArgs } from 'node:util'
import type { Knex } from 'knex'
import { createApiKeys, type ManagedApiKeys } from '../auth/keys.ts'
import { parseLifetime } from '../auth/lifetime.ts'
import { CORE_SCOPES, scopesOf } from '../auth/scopes.ts'
import { keyStatus } from '../auth/status.ts'
import { clean } from '../clean-text.ts'
import { resolveConfig, resolveCoreConfig } from '../config/resolve.ts'
import { DatabaseOutdated, upgradeOf } from '../data/copies/before-upgrade.ts'
import { CORE_MIGRATIONS, openCoreDatabase } from '../data/database.ts'
import { createLog } from '../logging/log.ts'
import { builtInFolder } from '../plugins/discover.ts'
import { UsageError, type CliContext, type Command } from './command.ts'
import { findConfig } from './find-config.ts'

export const token: Command = {
  async run (args, context) {
    const [action, ...rest] = args
    switch (action) {
      case 'create': return create(rest, context)
      case 'list': return list(rest, context)
      case 'revoke': return revoke(rest, context)
      default: throw new UsageError(action === undefined ? 'token needs one of create, list, revoke' : `token has no "${action}"`)
    }
  }
}

async function create (args: readonly string[], context: CliContext): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { config: { type: 'string' }, name: { type: 'string' }, scopes: { type: 'string', default: '*' }, repositories: { type: 'string' }, 'expires-in': { type: 'string' } }
  })
  const { name, scopes, repositories, config, 'expires-in': expiresIn } = values
  if (name === undefined || name === '') throw new UsageError('token create needs --name')
  const lifetimeMs = expiresIn === undefined ? undefined : lifetime(expiresIn)
  const expiresAt = lifetimeMs === undefined ? undefined : Date.now() + lifetimeMs
  const wanted = words(scopes)
  const asked = { name, scopes: wanted, expiresAt, repositories: repositories === undefined ? undefined : words(repositories) }
  const { key, record } = await withKeys(config, context, keys => keys.create(asked), await knownScopes(wanted, config, context))
  context.print(key)
  context.complain(`key ${record.id} (${clean(record.name)}) made${record.expiresAt === null ? '' : `, valid until ${time(record.expiresAt)}`}; it is shown only now`)
  return 0
}

async function list (args: readonly string[], context: CliContext): Promise<number> {
  const { values } = parseArgs({ args: [...args], options: { config: { type: 'string' } } })
  const records = await withKeys(values.config, context, keys => keys.list())
  const rows = records.map(record => [record.id, record.name, record.scopes.join(','), keyStatus(record, Date.now()), time(record.createdAt), time(record.expiresAt), time(record.lastUsedAt), record.repositories?.join(',') ?? '-'])
  for (const line of table([['ID', 'NAME', 'SCOPES', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED', 'REPOSITORIES'], ...rows])) context.print(line)
  return 0
}

async function revoke (args: readonly string[], context: CliContext): Promise<number> {
  const { values, positionals: [id, ...more] } = parseArgs({ args: [...args], allowPositionals: true, options: { config: { type: 'string' } } })
  if (id === undefined || more.length > 0) throw new UsageError('token revoke needs one key id')
  const revoked = await withKeys(values.config, context, keys => keys.revoke(id))
  context.print(`key ${revoked.id} revoked`)
  return 0
}

/** The scopes of the enabled plugins, which have to be imported for that; a key with full access needs none of them. */
async function knownScopes (wanted: readonly string[], config: string | undefined, { environment }: CliContext): Promise<readonly string[]> {
  if (wanted.every(scope => CORE_SCOPES.includes(scope))) return CORE_SCOPES
  const { source } = await findConfig(config, environment)
  const { plugins } = await resolveConfig(source, { environment, builtIns: builtInFolder })
  return scopesOf(plugins.map(({ manifest }) => manifest))
}

async function withKeys<T> (config: string | undefined, { environment }: CliContext, work: (keys: ManagedApiKeys) => Promise<T>, scopes: readonly string[] = []): Promise<T> {
  const { source } = await findConfig(config, environment)
  const database: Knex = await openCoreDatabase(resolveCoreConfig(source, environment), requireUpToDate)
  try {
    return await work(createApiKeys({ database, scopes, log: createLog({ level: 'silent' }) }))
  } finally {
    await database.destroy()
  }
}

/** Only the server upgrades a database, since it keeps a copy first. */
async function requireUpToDate (database: Knex): Promise<void> {
  if ((await upgradeOf(database, [CORE_MIGRATIONS])).length > 0) throw new DatabaseOutdated('the database is of an older version: start the server, which brings it up to date')
}

function lifetime (text: string): number {
  const ms = parseLifetime(text)
  if (ms === undefined) throw new UsageError(`--expires-in must be a duration such as 30d or 12h, not "${text}"`)
  return ms
}

function words (list: string): string[] {
  return list.split(',').map(word => word.trim()).filter(word => word !== '')
}

function time (ms: number | null): string {
  return ms === null ? '-' : new Date(ms).toISOString()
}

/** Who may make keys over the API chooses their names. */
function table (given: readonly (readonly string[])[]): string[] {
  const rows = given.map(row => row.map(clean))
  const widths = rows[0]?.map((_cell, column) => Math.max(...rows.map(row => row[column]?.length ?? 0))) ?? []
  return rows.map(row => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ').trimEnd())
}
