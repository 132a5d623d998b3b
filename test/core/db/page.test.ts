// Lists are filtered, ordered and cut by the database, the same on SQLite and MariaDB, and by an index however many rows there are.
import t, { type Test } from 'tap'
import type { Knex } from 'knex'
import { store } from '../../../bench/lists/rows.ts'
import { createApiKeyRepository } from '../../../core/auth/key-repository.ts'
import { CORE_MIGRATIONS } from '../../../core/data/database.ts'
import type { Journal } from '../../../core/db/changes.ts'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { dialectOf } from '../../../core/db/open.ts'
import { pageOf, rowsAlike, whereIs, whereTags, type RowOrder } from '../../../core/db/page.ts'
import type { Found, WholePage } from '../../../core/http/list.ts'
import { BuilderRepository } from '../../../plugins/builds/builders/repository.ts'
import { BuildRepository } from '../../../plugins/builds/repository.ts'
import { manifest as builds } from '../../../plugins/builds/manifest.ts'
import { manifest as devices } from '../../../plugins/devices/manifest.ts'
import { DeviceRepository } from '../../../plugins/devices/repository.ts'
import { manifest as images } from '../../../plugins/images/manifest.ts'
import { ImagesRepository } from '../../../plugins/images/repository.ts'
import { manifest as pushes } from '../../../plugins/pushes/manifest.ts'
import { PushRepository } from '../../../plugins/pushes/repository.ts'
import { manifest as snapshots } from '../../../plugins/snapshots/manifest.ts'
import { SnapshotRepository } from '../../../plugins/snapshots/repository.ts'
import { manifest as volumes } from '../../../plugins/volumes/manifest.ts'
import { VolumeRepository } from '../../../plugins/volumes/repository.ts'
import { manifest as webhooks } from '../../../plugins/webhooks/manifest.ts'
import { WebhookRepository } from '../../../plugins/webhooks/repository.ts'
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
/** Nothing is changed here. */
const UNREAD: Journal = { know: () => {}, write: async () => {}, progress: () => {} }

eachDatabase(t, 'each page of each list comes out of an index', async (t, database) => {
  await migratePlugin(database, CORE_MIGRATIONS.id, CORE_MIGRATIONS.folder)
  for (const { id, migrations } of [snapshots, volumes, builds, images, pushes]) await migratePlugin(database, id, migrations)
  await store(database, HOST, COUNT)
  await store(database, 'other-host', COUNT, 'b')
  // As InnoDB does by itself, a while after many rows have come.
  if (dialectOf(database) === 'mysql') await database.raw('ANALYZE TABLE snapshots_snapshots, volumes_volumes, builds_builds, images_tags, images_contents, pushes_pushes, core_api_keys')
  const [ofSnapshots, ofVolumes, ofBuilds, ofImages, ofPushes, ofKeys] = [
    new SnapshotRepository(database, HOST), new VolumeRepository(database, HOST), new BuildRepository(database, HOST), new ImagesRepository(database, HOST), new PushRepository(database, HOST), createApiKeyRepository(database)
  ]
  const first = { limit: 10 }
  const lists: ReadonlyArray<readonly [string, (page: { readonly limit: number, readonly after?: string }) => Promise<Found<{ readonly id: string } | { readonly name: string }>>]> = [
    ['snapshots by time', async (page) => await ofSnapshots.page({}, { ...page, sort: '-created_at' })],
    ['snapshots by name', async (page) => await ofSnapshots.page({}, { ...page, sort: 'name' })],
    ['snapshots of a source', async (page) => await ofSnapshots.page({ sourceId: 'a00000000000000000000007' }, { ...page, sort: 'created_at' })],
    ['volumes by time', async (page) => await ofVolumes.page({}, { ...page, sort: 'created_at' })],
    ['volumes by name', async (page) => await ofVolumes.page({}, { ...page, sort: '-name' })],
    ['volumes by size', async (page) => await ofVolumes.page({}, { ...page, sort: 'size_gb' })],
    ['builds by time', async (page) => await ofBuilds.page({}, { ...page, sort: '-created_at' })],
    ['builds of a status', async (page) => await ofBuilds.page({ status: 'failed' }, { ...page, sort: 'created_at' })],
    ['images by name', async (page) => await ofImages.page({}, { ...page, sort: 'name' })],
    ['images by time', async (page) => await ofImages.page({}, { ...page, sort: '-created_at' })],
    ['images of a status', async (page) => await ofImages.page({ status: 'ready' }, { ...page, sort: 'name' })],
    ['pushes by time', async (page) => await ofPushes.page({}, { ...page, sort: '-created_at' })],
    ['pushes by status', async (page) => await ofPushes.page({}, { ...page, sort: 'status' })],
    ['keys by time', async (page) => await ofKeys.page({}, { ...page, sort: 'created_at' }, 0)],
    ['keys by name', async (page) => await ofKeys.page({}, { ...page, sort: '-name' }, 0)]
  ]
  for (const [name, list] of lists) {
    const found = await planned(t, database, `${name}, first page`, async () => await list(first))
    t.equal(found.items.length, 10, name)
    const last = found.items.at(-1) as { readonly id?: string, readonly name?: string } | undefined
    const next = await planned(t, database, `${name}, next page`, async () => await list({ ...first, after: name.startsWith('images') ? last?.name ?? '' : last?.id ?? '' }))
    t.equal(next.items.length, 10, name)
    t.notOk(next.items.some((item) => found.items.some((other) => JSON.stringify(other) === JSON.stringify(item))), `${name}: no item twice`)
  }
  const single: ReadonlyArray<readonly [string, () => Promise<readonly unknown[]>, RegExp?]> = [
    ['a snapshot by the beginning of its id', async () => await ofSnapshots.alike('a0000000000000000000005k')],
    ['a volume by its id', async () => await ofVolumes.alike('a0000000000000000000005k', undefined)],
    ['a volume by its name', async () => await ofVolumes.alike('volume-77', undefined)],
    ['a snapshot by its name', async () => (await ofSnapshots.page({ name: 'snapshot-77' }, { limit: 10, sort: 'created_at' })).items, /snapshots_by_name/],
    ['volumes of a name', async () => (await ofVolumes.page({ name: 'volume-77' }, { limit: 10, sort: 'created_at' })).items, /volumes_by_name|sqlite_autoindex/],
    ['an image by its name', async () => (await ofImages.page({ name: 'registry.example.com/team/image-77:latest' }, { limit: 10, sort: 'created_at' })).items, /images_by_name/],
    ['a key by its name', async () => (await ofKeys.page({ name: 'key-77' }, { limit: 10, sort: 'created_at' }, 0)).items],
    ['sources of snapshots by a name', async () => await ofSnapshots.sourcesAlike('web-7')]
  ]
  for (const [name, find, mustUse] of single) t.equal((await planned(t, database, name, find, { maySort: true, ...mustUse === undefined ? {} : { mustUse } })).length, 1, name)
})

eachDatabase(t, 'so does each page of the lists of webhooks, devices and builders, filtered and ordered', async (t, database) => {
  await migratePlugin(database, CORE_MIGRATIONS.id, CORE_MIGRATIONS.folder)
  for (const { id, migrations } of [webhooks, devices, builds]) await migratePlugin(database, id, migrations)
  for (const host of [HOST, 'other-host']) await storeSmall(database, host, SMALL_COUNT)
  if (dialectOf(database) === 'mysql') await database.raw('ANALYZE TABLE webhooks_webhooks, devices_devices, builds_builders')
  const [ofWebhooks, ofDevices, ofBuilders] = [new WebhookRepository(database, HOST, UNREAD), new DeviceRepository(database, HOST), new BuilderRepository(database, HOST)]
  type Item = { readonly id: string, readonly name?: string | null, readonly status?: string, readonly createdAt: number }
  type List = (page: { readonly limit: number, readonly after?: string }) => Promise<Found<Item>>
  const lists: ReadonlyArray<readonly [string, number, List, (item: Item) => string | number | null | undefined, boolean?]> = [
    ['webhooks by time', SMALL_COUNT, async (page) => await ofWebhooks.page({}, { ...page, sort: 'created_at' }), ({ createdAt }) => createdAt],
    ['webhooks by time, latest first', SMALL_COUNT, async (page) => await ofWebhooks.page({}, { ...page, sort: '-created_at' }), ({ createdAt }) => -createdAt],
    ['webhooks by status', SMALL_COUNT, async (page) => await ofWebhooks.page({}, { ...page, sort: 'status' }), ({ status }) => status],
    ['webhooks that are dead', SMALL_COUNT / 3, async (page) => await ofWebhooks.page({ status: 'dead' }, { ...page, sort: 'created_at' }), ({ createdAt }) => createdAt],
    ['devices by time', SMALL_COUNT, async (page) => await ofDevices.page({}, { ...page, sort: 'created_at' }), ({ createdAt }) => createdAt],
    ['devices by name', SMALL_COUNT, async (page) => await ofDevices.page({}, { ...page, sort: 'name' }), ({ name }) => name],
    ['devices of a tag', SMALL_COUNT / 2, async (page) => await ofDevices.page({ tags: { even: 'true' } }, { ...page, sort: '-created_at' }), ({ createdAt }) => -createdAt],
    ['builders by time', SMALL_COUNT, async (page) => await ofBuilders.page({}, { ...page, sort: 'created_at' }), ({ createdAt }) => createdAt],
    ['builders that failed', SMALL_COUNT / 3, async (page) => await ofBuilders.page({ status: 'error' }, { ...page, sort: '-created_at' }), ({ createdAt }) => -createdAt],
    // A builder's name is free text of any length, and need not be unique: there is no index over it.
    ['builders by name', SMALL_COUNT, async (page) => await ofBuilders.page({}, { ...page, sort: 'name' }), ({ name }) => name, true]
  ]
  for (const [name, count, list, key, maySort = false] of lists) {
    const items: Item[] = []
    for (let hasMore = true; hasMore;) {
      const after = items.at(-1)?.id
      const found = await planned(t, database, name, async () => await list({ limit: 40, ...after === undefined ? {} : { after } }), { maySort })
      items.push(...found.items)
      hasMore = found.hasMore
    }
    t.equal(new Set(items.map(({ id }) => id)).size, items.length, `${name}: no item twice`)
    t.equal(items.length, count, `${name}: none is left out, and none of another host is there`)
    const keys = items.map(key)
    t.same(keys, [...keys].sort((one, other) => one === other ? 0 : (one ?? '') < (other ?? '') ? -1 : 1), name)
  }
  const single: ReadonlyArray<readonly [string, () => Promise<readonly unknown[]>]> = [
    ['devices of a name', async () => (await ofDevices.page({ name: `device-${HOST}-077` }, { limit: 10, sort: 'created_at' })).items],
    ['builders of a name', async () => (await ofBuilders.page({ name: 'builder-077' }, { limit: 10, sort: '-name' })).items]
  ]
  for (const [name, find] of single) t.equal((await planned(t, database, name, find, { maySort: true })).length, 1, name)
  t.same((await ofDevices.page({ name: 'DEVICE-HOST-077' }, { limit: 10, sort: 'name' })).items, [], 'case matters')
})

async function storeSmall (database: Knex, host: string, count: number): Promise<void> {
  const numbers = Array.from({ length: count }, (_, index) => index)
  // Ids are in another order than times and names.
  const common = (index: number) => ({ id: `${host}-${padded((index * 7) % count)}`, host_id: host, created_at: 1000 + index })
  await database.batchInsert('webhooks_webhooks', numbers.map((index) => ({ ...common(index), url: 'http://127.0.0.1:9/', filter: '{}', secret: '', key_id: 'a', enabled: 1, status: ['active', 'failing', 'dead'][index % 3], position: 0, attempts: 0 })), 30)
  await database.batchInsert('devices_devices', numbers.map((index) => ({
    ...common(index), name: `device-${host}-${padded(index)}`, name_key: `device-${host}-${padded(index)}`, type: 'pci', pci_address: `0000:${padded(index)}:00.0`, vendor_id: '8086', device_id: '1533', iommu_group: index,
    tags: JSON.stringify({ even: String(index % 2 === 0) }), turns: 0
  })), 30)
  await database.batchInsert('builds_builders', numbers.map((index) => ({ ...common(index), status: ['ready', 'pruning', 'error'][index % 3], name: `builder-${padded(index)}`, disk_size_gb: 1, volume_id: 'v', tags: '{}' })), 30)
}

function padded (index: number): string {
  return String(index).padStart(3, '0')
}

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
