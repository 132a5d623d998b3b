// The journal: exactly the changes that were committed, in the order of their commits, for a while.
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Knex } from 'knex'
import t, { type Test } from 'tap'
import { CORE_MIGRATIONS } from '../../../core/data/database.ts'
import { absentJournal } from '../../../core/db/absent-journal.ts'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { DatabaseUnavailable } from '../../../core/db/deadline.ts'
import { builtInFolder, findBuiltIns, importPlugin } from '../../../core/plugins/discover.ts'
import type { Clocks } from '../../../core/steady-clock.ts'
import { createFeed } from '../../../plugins/events/feed.ts'
import { EventJournal } from '../../../plugins/events/journal/journal.ts'
import { JournalRepository } from '../../../plugins/events/journal/repository.ts'
import { eventually } from '../../helpers/eventually.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'
import { settableClock } from '../../helpers/settable-clock.ts'
import { makeTable, Things } from './things.ts'

async function open (t: Test, database: Knex, clocks?: Clocks): Promise<{ journal: EventJournal, things: Things }> {
  await migratePlugin(database, CORE_MIGRATIONS.id, CORE_MIGRATIONS.folder)
  await migratePlugin(database, 'events', new URL('../../../plugins/events/migrations/', import.meta.url))
  await makeTable(database)
  const journal = new EventJournal(new JournalRepository(database, 'host'), clocks)
  t.teardown(() => { journal.close() })
  await journal.open()
  return { journal, things: new Things(database, journal) }
}

const all = async (journal: EventJournal, after: number): Promise<string[] | undefined> => (await journal.after(after))?.map(({ action, state }) => `${action} ${state.id} ${state.status}`)

eachDatabase(t, 'an event is there exactly if its change is', async (t, database) => {
  const { journal, things } = await open(t, database)
  const { newest } = await journal.window()
  await things.make('a')
  await things.set('a', '1')
  await t.rejects(things.make('a'))
  await t.rejects(things.changes.commit(async (_trx, note) => {
    note({ action: 'created', id: 'b', name: null, status: '0', tags: {} })
    await Promise.reject(new Error('not this one'))
  }))
  await things.remove('a')
  t.same(await all(journal, newest), ['created a 0', 'updated a 1', 'deleted a 1'])
})

eachDatabase(t, 'nobody reads past a change that is not committed yet', async (t, database) => {
  if (database.client.config.client !== 'mysql2') { t.pass('SQLite has one transaction at a time'); return }
  const { journal, things } = await open(t, database)
  const { newest } = await journal.window()
  let commit = (): void => {}
  let written = (): void => {}
  const isWritten = new Promise<void>((resolve) => { written = resolve })
  const slow = database.transaction(async (trx) => {
    await journal.write(trx, { resource: 'thing', scope: 'volume:read', list: async () => [] }, [{ action: 'created', id: 'slow', name: null, status: '0', tags: {} }])
    written()
    await new Promise<void>((resolve) => { commit = resolve })
  })
  await isWritten
  await things.make('fast')
  t.same(await all(journal, newest), [], 'the later one waits for the earlier one')
  commit()
  await slow
  t.same(await all(journal, newest), ['created slow 0', 'created fast 0'])
})

eachDatabase(t, 'a commit whose answer is lost holds readers up until it is known what became of it', async (t, database) => {
  const { journal, things } = await open(t, database)
  const { newest } = await journal.window()
  await t.rejects(database.transaction(async (trx) => {
    await journal.write(trx, { resource: 'thing', scope: 'volume:read', list: async () => [] }, [{ action: 'created', id: 'lost', name: null, status: '0', tags: {} }])
    throw DatabaseUnavailable()
  }))
  await things.make('next')
  t.same(await eventually('readers go on', async () => (await all(journal, newest))?.join()), 'created next 0')
})

eachDatabase(t, 'it goes on after a restart, and after ids that a database brought back does not know a client is told', async (t, database) => {
  const { journal, things } = await open(t, database)
  const { newest } = await journal.window()
  await things.make('a')
  const before = await journal.window()
  journal.close()
  const again = await open(t, database)
  t.same(await again.journal.window(), before)
  await again.things.set('a', '1')
  t.same(await all(again.journal, newest), ['created a 0', 'updated a 1'])
  t.equal(await again.journal.resume(String(before.newest)), before.newest)
  await t.rejects(again.journal.resume(String(before.newest + 1)), { code: 'events_expired', kind: 'gone' })
  await t.rejects(again.journal.resume('x1'), { code: 'invalid_request' })
})

eachDatabase(t, 'who has read all from a server whose clock was an hour ahead gets the events of the next one, whose clock is right', async (t, database) => {
  const first = await open(t, database, settableClock().clocks)
  await first.things.make('a')
  first.journal.close()
  const aheadClock = settableClock()
  aheadClock.set(1)
  const ahead = await open(t, database, aheadClock.clocks)
  const { newest } = await ahead.journal.window()
  const page = await createFeed({ checkFilter: () => undefined }, ahead.journal).page(newest, {}, () => true)
  ahead.journal.close()
  const right = await open(t, database, settableClock().clocks)
  await right.things.set('a', '1')
  t.same(await all(right.journal, page?.at ?? 0), ['updated a 1'])
})

eachDatabase(t, 'what is too old or too much is removed, and who wants it is told', async (t, database) => {
  const { clocks, pass } = settableClock()
  const { journal, things } = await open(t, database, clocks)
  const { newest: start } = await journal.window()
  await things.make('a')
  for (let status = 0; status < 9; status++) await things.set('a', String(status))
  await journal.trim(4, 3_600_000, 3)
  t.equal(await journal.after(start), undefined)
  await t.rejects(journal.resume(String(start)), { code: 'events_expired' })
  const { oldest } = await journal.window()
  t.same(await all(journal, await journal.resume(String(oldest))), ['updated a 5', 'updated a 6', 'updated a 7', 'updated a 8'])
  pass(1.01)
  await things.set('a', 'last')
  await journal.trim(4, 3_600_000)
  const window = await journal.window()
  t.same(await all(journal, window.oldest), ['updated a last'])
})

eachDatabase(t, 'what was written before a time without a journal has passed at once, however much it is, and is removed little by little', async (t, database) => {
  const { clocks, set } = settableClock()
  const first = await open(t, database, clocks)
  await first.things.make('a')
  const before = (await first.journal.window()).newest
  first.journal.close()
  for (let at = 0; at < 5000; at += 500) await database('events_journal').insert(Array.from({ length: 500 }, (_, index) => ({ host_id: 'host', id: before + 1 + at + index, resource: 'thing', action: 'updated', scope: 'volume:read', state: '{}' })))
  const count = async (): Promise<number> => (await database('events_journal').select('id')).length
  const afterHole = async (): Promise<Awaited<ReturnType<typeof open>>> => {
    await new Things(database, absentJournal('host')).set('a', 'unseen')
    return await open(t, database, clocks)
  }
  const second = await afterHole()
  t.equal(await count(), 5001, 'the start removes nothing')
  const { oldest, newest } = await second.journal.window()
  t.equal(newest, oldest)
  t.ok(oldest > before + 5000)
  t.equal(await second.journal.after(before), undefined)
  for (const id of [before, before + 5000]) await t.rejects(second.journal.resume(String(id)), { code: 'events_expired' })
  t.equal(await second.journal.after(second.journal.resumed(newest)), undefined, 'whoever had read all has missed something, too')
  await second.things.set('a', 'seen')
  t.same(await all(second.journal, oldest), ['updated a seen'])
  second.journal.close()

  set(-1)
  const third = await afterHole()
  const window = await third.journal.window()
  t.ok(window.oldest > oldest, 'the next one passes more, whatever the clock says')
  let most = 0
  let left = await count()
  const removed = JournalRepository.prototype.remove
  t.teardown(() => { JournalRepository.prototype.remove = removed })
  JournalRepository.prototype.remove = async function (...args) {
    const isDone = await removed.apply(this, args)
    const now = await count()
    most = Math.max(most, left - now)
    left = now
    t.equal((await open(t, database, clocks)).journal.head(), window.newest, 'a server that starts meanwhile knows the same')
    return isDone
  }
  await third.journal.trim(100_000, 3_600_000)
  t.same([most, await count()], [1000, 0])
  t.same(await third.journal.window(), window)
  await third.things.set('a', 'last')
  t.same(await all(third.journal, window.newest), ['updated a last'])
})

t.test('each built-in plugin that may be without a journal notes that it was', async (t) => {
  for (const [id, index] of await findBuiltIns(builtInFolder)) {
    const { manifest } = await importPlugin(id, index)
    if (manifest.optional?.includes('journal') !== true) continue
    const files = (await readdir(dirname(index), { recursive: true })).filter((name) => name.endsWith('.js'))
    const texts = await Promise.all(files.map(async (name) => await readFile(join(dirname(index), name), 'utf8')))
    t.ok(texts.some((text) => text.includes('?? absentJournal(')), id)
  }
})

eachDatabase(t, 'a clock that is ahead for a moment makes no event too old; the limit of their number holds', async (t, database) => {
  const { clocks, set, pass } = settableClock()
  const { journal, things } = await open(t, database, clocks)
  const { newest: start } = await journal.window()
  await things.make('a')
  await things.set('a', '1')
  set(24 * 365)
  await journal.trim(10, 24 * 3_600_000)
  set(-24 * 365)
  await journal.trim(10, 24 * 3_600_000)
  t.same(await all(journal, start), ['created a 0', 'updated a 1'])
  set(24 * 365)
  await journal.trim(1, 24 * 3_600_000)
  const { oldest } = await journal.window()
  t.same(await all(journal, oldest), ['updated a 1'])
  pass(1)
  await journal.trim(1, 24 * 3_600_000)
  t.equal(await journal.after(oldest), undefined, 'a clock that has been right for an hour is believed')
})
