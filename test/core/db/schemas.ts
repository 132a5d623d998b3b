// Databases as earlier versions left them: made by the migrations up to some version, with rows, and kept as SQL in schemas/, so that later changes do not change them.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Knex } from 'knex'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { dialectOf } from '../../../core/db/open.ts'
import { packageRoot } from '../../../core/package-root.ts'

export interface Schema { readonly id: string, readonly folder: URL, readonly names: readonly string[] }
export type Rows = Readonly<Record<string, readonly Record<string, unknown>[]>>

const COMPILED = new URL('../../../', import.meta.url)
const KEPT = join(packageRoot, 'test/core/db/schemas')
const ROWS = 3

/** What the migrations of that table look at, by row. */
const SPECIAL: Readonly<Record<string, readonly Record<string, unknown>[]>> = {
  core_api_keys: ['["instance:read"]', '["*"]', '["image:write","push:write"]'].map((scopes) => ({ scopes })),
  volumes_volumes: [...[{ name: 'Data', status: 'ready', size_gb: 1 }, { name: 'data', status: 'ready', size_gb: 2000 }, { name: 'other', status: 'deleting', size_gb: 3 }].map((row) => ({ ...row, host_id: 'host', owner: null, name_key: null }))]
}

/** Everybody who has migrations, with their names in order. */
export async function allSchemas (): Promise<Schema[]> {
  const plugins = (await readdir(new URL('plugins/', COMPILED))).map((id) => ({ id, folder: new URL(`plugins/${id}/migrations/`, COMPILED) }))
  const all = [{ id: 'core', folder: new URL('core/db/migrations/', COMPILED) }, ...plugins].filter(({ folder }) => existsSync(folder))
  return await Promise.all(all.map(async ({ id, folder }) => ({ id, folder, names: (await readdir(folder)).filter((name) => name.endsWith('.js')).map((name) => name.slice(0, -3)).sort() })))
}

/** A folder with the first of the migrations. */
export async function firstOf ({ folder, names }: Schema, count: number, place: string): Promise<URL> {
  await mkdir(place, { recursive: true })
  await writeFile(join(place, 'package.json'), '{"type":"module"}')
  for (const name of names.slice(0, count)) await writeFile(join(place, `${name}.js`), `export * from ${JSON.stringify(new URL(`${name}.js`, folder).href)}\n`)
  return pathToFileURL(place)
}

/** Brings an empty database to that version and fills its tables. */
export async function makeVersion (database: Knex, schema: Schema, count: number, place: string): Promise<void> {
  await migratePlugin(database, schema.id, await firstOf(schema, count, place))
  for (const table of await tablesOf(database, schema)) {
    const columns = Object.entries(await database(table).columnInfo())
    const keys = await keysOf(database, table)
    for (let row = 0; row < ROWS; row++) {
      const values = Object.fromEntries(columns.map(([name, info]) => [name, valueFor(name, { ...info, nullable: info.nullable && !keys.includes(name) }, row)]))
      const special = Object.entries(SPECIAL[table]?.[row] ?? {}).filter(([name]) => name in values)
      await database(table).insert({ ...values, ...Object.fromEntries(special) })
    }
  }
}

/** The tables of the plugin but for the record of its migrations. */
export async function tablesOf (database: Knex, { id }: Schema): Promise<string[]> {
  const prefix = `${id.replaceAll('-', '_')}_`
  const found: { name: string }[] = dialectOf(database) === 'sqlite'
    ? await database.raw('SELECT name FROM sqlite_master WHERE type = \'table\' ORDER BY name')
    : (await database.raw('SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name'))[0]
  return found.map(({ name }) => name).filter((name) => name.startsWith(prefix) && name !== `${prefix}migrations`)
}

export async function rowsOf (database: Knex, schema: Schema): Promise<Rows> {
  const tables = await tablesOf(database, schema)
  return Object.fromEntries(await Promise.all(tables.map(async (table) => [table, (await database(table).select()).map((row) => ({ ...row }))])))
}

/** The rows with only those columns that the others have, in an order of their own. */
export function comparable (rows: Rows, others: Rows): unknown {
  return Object.fromEntries(Object.entries(rows).map(([table, list]) => {
    const kept = new Set(Object.keys(others[table]?.[0] ?? {}))
    return [table, list.map((row) => JSON.stringify(Object.entries(row).filter(([name]) => kept.has(name)).sort())).sort()]
  }))
}

/** Of an SQLite database, as statements. */
export async function dumpOf (database: Knex): Promise<string> {
  const made: { name: string, type: string, sql: string }[] = await database.raw('SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE \'sqlite_%\' ORDER BY type DESC, name')
  const rows = []
  for (const { name } of made.filter(({ type }) => type === 'table')) {
    for (const row of await database(name).select()) {
      const entries = Object.entries({ ...row, ...'applied_at' in row ? { applied_at: 0 } : {} })
      rows.push(`INSERT INTO \`${name}\` (${entries.map(([column]) => `\`${column}\``).join(', ')}) VALUES (${entries.map(([, value]) => literal(value)).join(', ')})`)
    }
  }
  return `${[...made.map(({ sql }) => sql), ...rows].join(';\n')};\n`
}

export async function loadDump (database: Knex, text: string): Promise<void> {
  for (const statement of text.split(';\n')) if (statement.trim() !== '') await database.raw(statement.replaceAll('?', '\\?'))
}

export function keptFile ({ id, names }: Schema, count: number): string {
  return join(KEPT, `${id}-${names[count - 1] ?? ''}.sql`)
}

export async function readKept (schema: Schema, count: number): Promise<string | undefined> {
  const file = keptFile(schema, count)
  return existsSync(file) ? await readFile(file, 'utf8') : undefined
}

/** SQLite says of the columns of a primary key that they may be null. */
async function keysOf (database: Knex, table: string): Promise<string[]> {
  if (dialectOf(database) !== 'sqlite') return []
  const columns: { name: string, pk: number }[] = await database.raw(`PRAGMA table_info(\`${table}\`)`)
  return columns.filter(({ pk }) => pk > 0).map(({ name }) => name)
}

function literal (value: unknown): string {
  return typeof value === 'string' ? `'${value.replaceAll('\'', '\'\'')}'` : String(value)
}

/** The last row has nothing where it may. */
function valueFor (name: string, { type, maxLength, nullable }: Knex.ColumnInfo, row: number): unknown {
  if (nullable && row === ROWS - 1) return null
  if (/int/.test(type)) return /big/.test(type) ? 1_700_000_000_000 + row : row + 1
  return `${name} ${row}`.slice(-(Number(maxLength) > 0 ? Number(maxLength) : 1000))
}
