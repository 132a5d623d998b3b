// Claims in the database: sums that are right, nobody who sees the room of another, and nothing of other hosts.
import t from 'tap'
import type { Knex } from 'knex'
import { migratePlugin, revertPlugin } from '../../../core/db/migrate.ts'
import { ClaimRepository, totalOf, type Totals } from '../../../plugins/resources/repository.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'
import { runModule } from '../../helpers/processes.ts'
import { claimOf } from './claims.ts'

const MIGRATIONS = new URL('../../../plugins/resources/migrations/', import.meta.url)
const anything = (): void => {}

async function openRepository (database: Knex, hostId = 'host'): Promise<ClaimRepository> {
  await migratePlugin(database, 'resources', MIGRATIONS)
  const repository = new ClaimRepository(database, hostId)
  await repository.open()
  return repository
}

eachDatabase(t, 'a claim is weighed against all others of its host, and against itself', async (t, database) => {
  const repository = await openRepository(database)
  const other = await openRepository(database, 'other')
  await other.claim(claimOf('elsewhere'), anything)
  const large = { memoryBytes: 3 * 2 ** 40, diskBytes: 5 * 2 ** 40, downloadBps: 5_000_000_000, uploadBps: 6_000_000_000, diskIoBps: 7_000_000_000 }
  await repository.claim(claimOf('a', large), anything)
  await repository.claim(claimOf('b', { active: false, vcpus: 8 }), anything)
  await repository.claim(claimOf('a', { kind: 'volume', active: false, diskBytes: 100 }), anything)
  const seen: Totals[] = []
  await repository.claim(claimOf('b', { vcpus: 8 }), (others, before) => { seen.push(others, before) })
  t.same(seen, [
    { vcpus: 1, ...large, diskBytes: large.diskBytes + 100, overlayBytes: large.diskBytes },
    { vcpus: 0, memoryBytes: 0, diskBytes: 10, overlayBytes: 10, downloadBps: 0, uploadBps: 0, diskIoBps: 0 }
  ], 'what rests takes its disk alone')
  t.match(totalOf(await repository.all()), { vcpus: 9, diskBytes: large.diskBytes + 110 })
  await repository.rest('a')
  t.match(totalOf(await repository.all()), { vcpus: 8, memoryBytes: 2 ** 30, diskBytes: large.diskBytes + 110 })
  await repository.release('instance', 'a')
  await repository.release('instance', 'a')
  await repository.release('instance', 'elsewhere')
  t.same((await repository.all()).map(({ kind, id }) => `${kind} ${id}`), ['instance b', 'volume a'])
  t.same((await other.all()).map(({ id }) => id), ['elsewhere'])
})

eachDatabase(t, 'a claim that is refused changes nothing', async (t, database) => {
  const repository = await openRepository(database)
  await repository.claim(claimOf('a', { active: false }), anything)
  const before = await repository.all()
  const refuse = (): void => { throw new Error('no') }
  await t.rejects(repository.claim(claimOf('a'), refuse), { message: 'no' })
  await t.rejects(repository.claim(claimOf('b'), refuse), { message: 'no' })
  t.same(await repository.all(), before)
})

eachDatabase(t, 'processes that claim at the same time get what there is room for, and no more', async (t, database, url) => {
  const repository = await openRepository(database)
  const program = new URL('programs/claim.js', import.meta.url)
  const ids = (name: string): string[] => Array.from({ length: 20 }, (_, at) => `${name}${at}`)
  await Promise.all(['x', 'y', 'z'].map((name) => runModule(program, [url, 'host', '10', ...ids(name)])))
  t.equal((await repository.all()).length, 10)
})

eachDatabase(t, 'all claims of a kind are replaced by those that there are', async (t, database) => {
  const repository = await openRepository(database)
  for (const id of ['a', 'b']) await repository.claim(claimOf(id), anything)
  await repository.claim(claimOf('v', { kind: 'volume' }), anything)
  await repository.replaceAll('instance', [claimOf('b', { active: false, name: 'renamed' }), claimOf('c')])
  t.match(await repository.all(), [{ id: 'b', active: false, name: 'renamed' }, { id: 'c', active: true }, { kind: 'volume', id: 'v' }])
  await repository.replaceAll('instance', [])
  t.match(await repository.all(), [{ id: 'v' }])
})

eachDatabase(t, 'the tables go as they came', async (t, database) => {
  await openRepository(database)
  await revertPlugin(database, 'resources', MIGRATIONS)
  t.equal(await database.schema.hasTable('resources_claims'), false)
  t.equal(await database.schema.hasTable('resources_turns'), false)
})

eachDatabase(t, 'of claims that are all of a kind, only those are written that are not stored as they are', async (t, database) => {
  const repository = await openRepository(database)
  const claims = Array.from({ length: 50 }, (_, index) => claimOf(`i${index}`, { active: index % 2 === 0 }))
  await repository.replaceAll('instance', claims)
  const written: string[] = []
  database.on('query', ({ sql }: { readonly sql: string }) => { if (/^(insert|delete)/.test(sql)) written.push(sql) })
  await repository.replaceAll('instance', claims)
  t.same(written, [])
  await repository.replaceAll('instance', claims.slice(1).map((claim, index) => index === 7 ? { ...claim, vcpus: 3 } : claim))
  t.equal(written.length, 2)
  t.same((await repository.all()).filter(({ vcpus }) => vcpus === 3).map(({ id }) => id), ['i8'])
})

eachDatabase(t, 'thousands of new claims, and thousands that go, leave the event loop turns for others', async (t, database) => {
  const repository = await openRepository(database)
  const claims = Array.from({ length: 2000 }, (_, index) => claimOf(`i${index}`))
  const turnsOf = async (work: () => Promise<void>): Promise<number> => {
    let turns = 0
    let next = setImmediate(function turn () { turns += 1; next = setImmediate(turn) })
    await work()
    clearImmediate(next)
    return turns
  }
  t.ok(await turnsOf(async () => { await repository.replaceAll('instance', claims) }) >= 5)
  t.equal((await repository.all()).length, claims.length)
  t.ok(await turnsOf(async () => { await repository.replaceAll('instance', []) }) >= 10, 'reading takes some of them, too')
  t.same(await repository.all(), [])
})
