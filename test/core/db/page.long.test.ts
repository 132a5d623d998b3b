// Lists are filtered, ordered and cut by the database, the same on SQLite and MariaDB, and by an index however many rows there are.
import t, { type Test } from 'tap'
import type { Knex } from 'knex'
import { store } from '../../../bench/lists/rows.ts'
import { createApiKeyRepository } from '../../../core/auth/key-repository.ts'
import { CORE_MIGRATIONS } from '../../../core/data/database.ts'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { dialectOf } from '../../../core/db/open.ts'
import { pageOf, rowsAlike, whereIs, whereTags, type RowOrder } from '../../../core/db/page.ts'
import type { Found, WholePage } from '../../../core/http/list.ts'
import { listsOfPlugins, type LongList, type ShortItem, type Single } from '../../helpers/lists.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'

interface Row { readonly id: string, readonly name: string | null, readonly number: number, readonly tags: string }
type Key = 'name' | 'number'

const ORDER: RowOrder<Key> = { columns: { name: 'name', number: 'number' }, nullable: ['name'], id: 'id', tie: 'id' }
const ROWS: readonly Row[] = [
  { id: 'a1', name: 'web', number: 3, tags: '{"team":"x","a\\"b":"1"}' },
  { id: 'a2', name: null, number: 1, tags: '{"team":"X"}' },
  { id: 'b1', name: 'db', number: 2, tags: '{}' },
  { id: 'b2', name: 'WEB', number: 2, tags: '{"team":"x"}' },
  { id: 'c_1', name: null, number: 2, tags: '{"c":"team","team":"\\"x"}' },
  { id: 'cx1', name: 'zoo', number: 5, tags: '{"TEAM":"x"}' }
]

eachDatabase(t, 'rows are filtered, ordered and cut in the database', async (t, database) => {
  await database.schema.createTable('things', (table) => {
    table.string('id', 64).primary()
    table.string('name', 64).nullable()
    table.integer('number').notNullable()
    table.text('tags', 'mediumtext').notNullable()
  })
  await database('things').insert(ROWS)
  const things = (): Knex.QueryBuilder => database('things')
  const page = async (wanted: Partial<WholePage<Key>>, filter: (query: Knex.QueryBuilder) => void = () => {}, isNarrow = false): Promise<Found<Row>> => await pageOf<Row, Key>(things, (query) => { filter(query); return { isNarrow } }, ORDER, { limit: 100, sort: 'number', ...wanted })
  const ids = ({ items }: Found<Row>): string => items.map(({ id }) => id).join(' ')

  t.equal(ids(await page({})), 'a2 b1 b2 c_1 a1 cx1')
  t.equal(ids(await page({ sort: '-number' })), 'cx1 a1 c_1 b2 b1 a2')
  for (const sort of ['name', '-name', 'number', '-number'] as const) {
    const whole = await page({ sort })
    t.equal(whole.items.length, ROWS.length)
    t.equal(whole.hasMore, false)
    for (const limit of [1, 2, 5]) {
      const pages: string[] = []
      for (let after: string | undefined; ;) {
        const found = await page({ sort, limit, ...after === undefined ? {} : { after } })
        t.ok(found.items.length <= limit)
        pages.push(ids(found))
        if (!found.hasMore) break
        after = found.items.at(-1)?.id
      }
      t.equal(pages.join(' '), ids(whole), `${sort}, ${limit} at a time: nothing is skipped or repeated`)
    }
  }
  await t.rejects(page({ after: 'nobody' }), { code: 'invalid_request', message: 'query parameter after: no item of this list has the id nobody' })

  t.equal(ids(await page({}, (query) => { whereIs(query, 'name', 'web') })), 'a1', 'case matters')
  t.equal(ids(await page({ sort: '-name' }, () => {}, true)), ids(await page({ sort: '-name' })), 'few rows are ordered the same way')
  const tagged = async (tags: Record<string, string>): Promise<string> => ids(await page({}, (query) => { whereTags(query, 'tags', tags) }))
  t.equal(await tagged({ team: 'x' }), 'b2 a1')
  t.equal(await tagged({ team: 'x', 'a"b': '1' }), 'a1')
  t.equal(await tagged({ team: 'X' }), 'a2', 'case matters')
  t.equal(await tagged({ team: '"x' }), 'c_1')
  t.equal(await tagged({ c: 'team', team: 'x' }), '')
  t.equal(ids(await page({ limit: 1, after: 'b2' }, (query) => { whereTags(query, 'tags', { team: 'x' }) })), 'a1', 'the filter holds on every page')

  const alike = async (text: string): Promise<string> => (await rowsAlike<Row>(things, text, { id: 'id', name: 'name' })).map(({ id }) => id).sort().join(' ')
  t.equal(await alike('a1'), 'a1')
  t.equal(await alike('c_'), 'c_1', 'an underscore is no wildcard')
  t.equal(await alike('zoo'), 'cx1')
  t.equal(await alike('b'), 'b1 b2')
  t.equal(await alike(''), '')
  t.equal(await alike('%'), '')
})

const HOST = 'host'
const COUNT = 3000
const SMALL_COUNT = 120

eachDatabase(t, 'each page of each list comes out of an index', async (t, database) => {
  await migratePlugin(database, CORE_MIGRATIONS.id, CORE_MIGRATIONS.folder)
  const plugins = (await listsOfPlugins()).flatMap(({ manifest, long }) => long === undefined ? [] : [{ ...long, manifest }])
  for (const { manifest: { id, migrations } } of plugins) await migratePlugin(database, id, migrations)
  await store(database, HOST, COUNT)
  await store(database, 'other-host', COUNT, 'b')
  // As InnoDB does by itself, a while after many rows have come.
  if (dialectOf(database) === 'mysql') await database.raw(`ANALYZE TABLE ${[...plugins.flatMap(({ tables }) => tables), 'core_api_keys'].join(', ')}`)
  const keys = createApiKeyRepository(database)
  const found = plugins.map(({ of }) => of(database, HOST))
  const first = { limit: 10 }
  const lists: readonly LongList[] = [
    ...found.flatMap((each) => each.lists),
    ['keys by time', async (page) => await keys.page({}, { ...page, sort: 'created_at' }, 0)],
    ['keys by name', async (page) => await keys.page({}, { ...page, sort: '-name' }, 0)]
  ]
  for (const [name, list] of lists) {
    const page = await planned(t, database, `${name}, first page`, async () => await list(first))
    t.equal(page.items.length, 10, name)
    const last = page.items.at(-1) as { readonly id?: string, readonly name?: string } | undefined
    const next = await planned(t, database, `${name}, next page`, async () => await list({ ...first, after: name.startsWith('images') ? last?.name ?? '' : last?.id ?? '' }))
    t.equal(next.items.length, 10, name)
    t.notOk(next.items.some((item) => page.items.some((other) => JSON.stringify(other) === JSON.stringify(item))), `${name}: no item twice`)
  }
  const single: readonly Single[] = [
    ...found.flatMap((each) => each.single),
    ['a key by its name', async () => (await keys.page({ name: 'key-77' }, { limit: 10, sort: 'created_at' }, 0)).items]
  ]
  for (const [name, find, mustUse] of single) t.equal((await planned(t, database, name, find, { maySort: true, ...mustUse === undefined ? {} : { mustUse } })).length, 1, name)
})

eachDatabase(t, 'so does each page of the lists of webhooks, devices and builders, filtered and ordered', async (t, database) => {
  await migratePlugin(database, CORE_MIGRATIONS.id, CORE_MIGRATIONS.folder)
  const plugins = (await listsOfPlugins()).flatMap(({ manifest, short }) => short === undefined ? [] : [{ ...short, manifest }])
  for (const { manifest: { id, migrations }, store: storeShort } of plugins) {
    await migratePlugin(database, id, migrations)
    for (const host of [HOST, 'other-host']) await storeShort(database, host, SMALL_COUNT)
  }
  if (dialectOf(database) === 'mysql') await database.raw(`ANALYZE TABLE ${plugins.flatMap(({ tables }) => tables).join(', ')}`)
  const found = plugins.map(({ of }) => of(database, HOST))
  const lists = found.flatMap((each) => each.lists)
  for (const [name, share, list, key, maySort = false] of lists) {
    const items: ShortItem[] = []
    for (let hasMore = true; hasMore;) {
      const after = items.at(-1)?.id
      const page = await planned(t, database, name, async () => await list({ limit: 40, ...after === undefined ? {} : { after } }), { maySort })
      items.push(...page.items)
      hasMore = page.hasMore
    }
    t.equal(new Set(items.map(({ id }) => id)).size, items.length, `${name}: no item twice`)
    t.equal(items.length, SMALL_COUNT * share, `${name}: none is left out, and none of another host is there`)
    const keys = items.map(key)
    t.same(keys, [...keys].sort((one, other) => one === other ? 0 : (one ?? '') < (other ?? '') ? -1 : 1), name)
  }
  for (const [name, find] of found.flatMap((each) => each.single)) t.equal((await planned(t, database, name, find, { maySort: true })).length, 1, name)
})

/** Does `work`, and sees that none of its questions reads a whole table, or sorts it. */
async function planned<T> (t: Test, database: Knex, name: string, work: () => Promise<T>, { maySort = false, mustUse }: { readonly maySort?: boolean, readonly mustUse?: RegExp } = {}): Promise<T> {
  const asked: Array<{ readonly sql: string, readonly bindings: readonly Knex.RawBinding[] }> = []
  const note = (query: { readonly sql: string, readonly bindings: readonly Knex.RawBinding[] }): void => { asked.push(query) }
  database.on('query', note)
  const result = await work().finally(() => { database.removeListener('query', note) })
  t.ok(asked.length > 0, name)
  for (const { sql, bindings } of asked) {
    // What is read for the ten rows of a page may be sorted.
    const isSorted = maySort || !sql.includes(' limit ')
    if (dialectOf(database) === 'sqlite') {
      const steps: Array<{ readonly detail: string }> = await database.raw(`EXPLAIN QUERY PLAN ${sql}`, [...bindings])
      for (const { detail } of steps) {
        if (detail.includes('VIRTUAL TABLE')) continue
        if (mustUse !== undefined && sql.includes(' limit ') && detail.startsWith('SEARCH')) t.match(detail, mustUse, `${name}: ${sql}`)
        t.notMatch(detail, isSorted ? /^SCAN (?!.* USING (?:COVERING )?INDEX)/ : /^SCAN (?!.* USING (?:COVERING )?INDEX)|TEMP B-TREE/, `${name}: ${sql}`)
      }
    } else {
      interface Step { readonly table: string | null, readonly type: string, readonly key: string | null, readonly Extra: string | null }
      const [steps = []]: Step[][] = await database.raw(`EXPLAIN ${sql}`, [...bindings])
      for (const step of steps) {
        const isConstant = step.table === null || /^(?:const|system)$/.test(step.type)
        t.ok(isConstant || step.key !== null, `${name}: ${sql}: ${JSON.stringify(step)}`)
        if (!isSorted) t.notMatch(step.Extra ?? '', /filesort|temporary/, `${name}: ${sql}: ${JSON.stringify(step)}`)
      }
    }
  }
  return result
}
