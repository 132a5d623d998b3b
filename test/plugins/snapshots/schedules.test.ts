// Schedules on a clock that the test sets: when they run, what they take, what they remove, and what becomes of them.
import t, { type Test } from 'tap'
import { Type } from 'typebox'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import { ScriptedHost } from '../instances/scripted.ts'
import { startWithSnapshots, TestClock, type SnapshotsApp } from './app.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const URL = '/instances/web/snapshot-schedule'

interface Scheduled extends SnapshotsApp {
  readonly id: string
  set (fields?: object): Promise<Record<string, unknown>>
  get (): Promise<Record<string, unknown>>
  /** snapshots, oldest first */
  list (): Promise<Record<string, unknown>[]>
}

async function scheduled (t: Test, options: Parameters<typeof startWithSnapshots>[1] = {}): Promise<Scheduled> {
  const app = await startWithSnapshots(t, options)
  const id = await app.make('web')
  await app.waitFor('web', 'Running')
  return { ...app, id, ...calls(t, app) }
}

function calls (t: Test, { call }: SnapshotsApp): Pick<Scheduled, 'set' | 'get' | 'list'> {
  return {
    async set (fields = {}) {
      const { status, body, text } = await call('PUT', URL, { interval: '1h', retention: { max_count: 10 }, ...fields })
      t.equal(status, 200, text)
      return body
    },
    get: async () => (await call('GET', URL)).body,
    async list () {
      const { body } = await call('GET', '/snapshots?sort=created_at')
      return Array.isArray(body) ? body : []
    }
  }
}

const at = (ms: number): string => new Date(ms).toISOString()

t.test('a schedule answers with the documented fields, and can be read and deleted', async (t) => {
  const { call, clock, id, set, get } = await scheduled(t)
  const now = clock.ms
  const body = await set({ retention: { max_count: 3, max_age: '48h' }, name_prefix: 'nightly', metadata: { team: 'x' } })
  t.same(body, {
    instance_id: id, interval: '1h', retention: { max_count: 3, max_age: '48h' }, name_prefix: 'nightly', metadata: { team: 'x' }, next_run_at: at(now + HOUR),
    last_run_at: null, last_snapshot_id: null, last_error: null, created_at: at(now), updated_at: at(now)
  })
  t.same(await get(), body)
  t.same((await call('GET', `/instances/${id}/snapshot-schedule`)).body, body)
  t.equal((await call('DELETE', URL)).status, 204)
  t.equal((await call('GET', URL)).status, 404)
  t.equal((await call('DELETE', URL)).status, 404)
})

t.test('runs begin a little later by chance, and another interval begins anew', async (t) => {
  const { clock, set } = await scheduled(t)
  clock.chance = 0.5
  const start = clock.ms
  t.match(await set(), { next_run_at: at(start + HOUR + 150_000) })
  clock.ms += MINUTE
  t.match(await set({ retention: { max_age: '24h' }, name_prefix: 'x', metadata: { a: 'b' } }), {
    next_run_at: at(start + HOUR + 150_000), retention: { max_age: '24h' }, name_prefix: 'x', metadata: { a: 'b' }, created_at: at(start), updated_at: at(clock.ms)
  })
  t.match(await set({ interval: '60m' }), { interval: '60m', next_run_at: at(start + HOUR + 150_000), name_prefix: null, metadata: {} }, 'the same interval in other words')
  t.match(await set({ interval: '24h' }), { next_run_at: at(clock.ms + 24 * HOUR + 150_000) })
})

t.test('a running instance is captured with its memory, one in standby too, and a stopped one as a disk', async (t) => {
  const { clock, call, set, get, list } = await scheduled(t)
  await set({ name_prefix: 'p', metadata: { team: 'x' } })
  await clock.pass(HOUR - 1)
  t.same(await list(), [], 'not before its time')
  await clock.pass(1)
  const [first] = await list()
  t.match(first, { kind: 'Standby', name: 'p-20260131-130000', tags: { team: 'x', 'berth.scheduled': 'true' }, source_instance_name: 'web' })
  t.match(await get(), { next_run_at: at(clock.ms + HOUR), last_run_at: at(clock.ms), last_snapshot_id: first?.['id'], last_error: null })
  t.match((await call('GET', '/instances/web')).body, { state: 'Running' })
  await call('POST', '/instances/web/standby')
  await clock.pass(HOUR)
  await call('POST', '/instances/web/restore')
  await call('POST', '/instances/web/stop')
  await clock.pass(HOUR)
  t.match((await list()).map(({ kind }) => kind), ['Standby', 'Standby', 'Stopped'])
})

t.test('a run that cannot be says why, and the next one is at its time', async (t) => {
  const { clock, host, set, get, list, id } = await scheduled(t)
  await set()
  host.vm.set({ status: 'paused' })
  await clock.pass(HOUR)
  t.match(await get(), { last_error: /^skipped: the instance was Paused/, last_run_at: at(clock.ms), next_run_at: at(clock.ms + HOUR), last_snapshot_id: null })
  host.vm.set({ status: 'running' })
  host.failures.set('capture', Object.assign(new Error('full'), { code: 'ENOSPC' }))
  await clock.pass(HOUR)
  t.match(await get(), { last_error: /disk of the data folder is full/ })
  host.failures.set('capture', new Error('/secret/path'))
  await clock.pass(HOUR)
  t.equal((await get())['last_error'], 'the snapshot failed; the log of the server says why')
  t.same(await list(), [])
  host.failures.clear()
  await clock.pass(HOUR)
  t.match(await get(), { last_error: null, last_snapshot_id: String })
  t.match(await list(), [{ name: 'scheduled-20260131-160000', source_instance_id: id }])
})

t.test('runs that were missed are not made up for, and the cadence stays', async (t) => {
  const clock = new TestClock()
  const host = new ScriptedHost()
  const first = await scheduled(t, { clock, host })
  await first.set()
  const planned = clock.ms + HOUR
  await first.app.stop()
  clock.ms += 5 * HOUR + 20 * MINUTE
  const next = await startWithSnapshots(t, { clock, host, dataDir: first.dataDir })
  const { list, get } = calls(t, next)
  await clock.pass(0)
  t.equal((await list()).length, 1)
  t.match(await get(), { next_run_at: at(planned + 5 * HOUR) })
  await clock.pass(MINUTE)
  t.equal((await list()).length, 1)
  await clock.pass(39 * MINUTE)
  t.equal((await list()).length, 2)
})

t.test('retention counts scheduled snapshots only, whatever the tags of others say', async (t) => {
  const { clock, set, list, take } = await scheduled(t)
  await set({ retention: { max_count: 2 } })
  const own = await take('web', 'Standby', { tags: { 'berth.scheduled': 'true' } })
  const made: unknown[] = []
  for (let run = 0; run < 4; run++) {
    await clock.pass(HOUR)
    made.push((await list()).at(-1)?.['id'])
  }
  t.same((await list()).map(({ id }) => id), [own, ...made.slice(2)])
  await set({ retention: { max_count: 1 } })
  await clock.pass(MINUTE)
  t.same((await list()).map(({ id }) => id), [own, made[3]], 'a smaller number holds at once')
  await set({ retention: { max_count: 0, max_age: '90m' } })
  await clock.pass(59 * MINUTE)
  t.equal((await list()).length, 3)
  await clock.pass(31 * MINUTE)
  t.equal((await list()).length, 2, 'what is older than the age is gone, and 0 is no limit')
})

t.test('after the instance is gone its schedule runs no more, and goes with its last snapshot', async (t) => {
  const { clock, call, set, list, id, make, waitFor } = await scheduled(t)
  await set({ retention: { max_age: '2h' } })
  await clock.pass(HOUR)
  await call('DELETE', '/instances/web')
  // Somebody takes the id for a name.
  await make(id)
  await waitFor(id, 'Running')
  await clock.pass(HOUR)
  t.equal((await list()).length, 1)
  await call('DELETE', `/instances/${id}`)
  const byId = `/instances/${id}/snapshot-schedule`
  t.match(await call('GET', byId), { status: 200, body: { instance_id: id } })
  t.equal((await call('PUT', byId, { interval: '1h', retention: { max_count: 1 } })).status, 404)
  await clock.pass(HOUR + 1)
  t.same(await list(), [])
  t.equal((await call('GET', byId)).status, 404)
})

t.test('without an age there is nothing to wait for after the instance is gone', async (t) => {
  const { clock, call, set, list, id } = await scheduled(t)
  await set()
  await clock.pass(HOUR)
  await call('DELETE', '/instances/web')
  await clock.pass(MINUTE)
  t.equal((await call('GET', `/instances/${id}/snapshot-schedule`)).status, 404)
  t.equal((await list()).length, 1, 'its snapshots stay')
})

t.test('a look at which nothing is due asks once, for what is due, and goes through no schedule and no snapshot', async (t) => {
  const asked: string[] = []
  const ear = definePlugin({
    manifest: { id: 'ear', provides: [], requires: ['database'], config: Type.Object({}, { additionalProperties: false }) },
    create: ({ database }) => ({ start: async () => { database.on('query', ({ sql }: { readonly sql: string }) => { if (sql.includes('snapshots_')) asked.push(sql) }) } })
  })
  const { clock, set, list } = await scheduled(t, { extra: [ear] })
  await set({ retention: { max_count: 2, max_age: '90m' } })
  await clock.pass(MINUTE)
  asked.length = 0
  await clock.pass(MINUTE)
  t.equal(asked.length, 1, asked.join('; '))
  t.match(asked[0], /next_run_at` <= /)
  await clock.pass(HOUR)
  asked.length = 0
  await clock.pass(MINUTE)
  t.equal(asked.length, 1, 'nor when there are snapshots that are too young')
  t.equal((await list()).length, 1)
  await clock.pass(HOUR)
  await clock.pass(31 * MINUTE)
  t.equal((await list()).length, 1, 'what has become too old is seen all the same')
})

t.test('another retention holds from the next look on', async (t) => {
  const { clock, set, list } = await scheduled(t)
  await set()
  for (let hours = 0; hours < 3; hours++) await clock.pass(HOUR)
  t.equal((await list()).length, 3)
  await set({ retention: { max_count: 1 } })
  await clock.pass(MINUTE)
  t.equal((await list()).length, 1)
})

t.test('one schedule that fails does not keep the others from running', async (t) => {
  const { clock, set, list, make, waitFor, call, host } = await scheduled(t)
  await set()
  await make('other')
  await waitFor('other', 'Running')
  await call('PUT', '/instances/other/snapshot-schedule', { interval: '1h', retention: { max_count: 1 } })
  let captures = 0
  host.onStep = (step) => { if (step === 'capture' && captures++ === 0) throw new Error('the first one fails') }
  await clock.pass(HOUR)
  t.equal((await list()).length, 1)
})

t.test('a clock that is put back stops no schedule', async (t) => {
  const { clock, set, get, list } = await scheduled(t)
  await set()
  clock.ms -= 30 * 24 * HOUR
  await clock.pass(MINUTE)
  t.match(await get(), { next_run_at: at(clock.ms + HOUR) })
  await clock.pass(HOUR)
  t.equal((await list()).length, 1)
})

t.test('a clock that is set forward makes no snapshot old before it has gone right for an hour', async (t) => {
  const { clock, set, list } = await scheduled(t)
  await set({ retention: { max_age: '48h' } })
  await clock.pass(HOUR)
  const [first] = await list()
  clock.ms += 10 * 365 * 24 * HOUR
  await clock.pass(MINUTE)
  await clock.pass(30 * MINUTE)
  t.same((await list())[0]?.['id'], first?.['id'], 'not yet')
  clock.ms -= 10 * 365 * 24 * HOUR
  for (let hours = 0; hours < 3; hours++) await clock.pass(HOUR)
  t.same((await list())[0]?.['id'], first?.['id'], 'put right, it is as young as before')
  clock.ms += 10 * 365 * 24 * HOUR
  await clock.pass(MINUTE)
  await clock.pass(HOUR)
  t.notOk((await list()).some(({ id }) => id === first?.['id']), 'believed')
})

t.test('snapshots that were made while the clock was ahead are too old as soon as one made after them is', async (t) => {
  const { clock, set, get, list } = await scheduled(t)
  await set({ retention: { max_age: '3h' } })
  const ids = async (): Promise<unknown[]> => (await list()).map(({ id }) => id)
  await clock.pass(HOUR)
  const ahead = 10 * 365 * 24 * HOUR
  clock.ms += ahead
  await clock.pass(HOUR)
  const wrong = (await get())['last_snapshot_id']
  clock.ms -= ahead
  // This look plans the next run anew.
  await clock.pass(HOUR)
  t.ok((await ids()).includes(wrong), 'nothing says yet when it was made')
  for (let hours = 0; hours < 3; hours++) await clock.pass(HOUR)
  t.ok((await ids()).includes(wrong), 'the next one is not too old yet')
  for (let hours = 0; hours < 2; hours++) await clock.pass(HOUR)
  t.notOk((await ids()).includes(wrong))
  t.equal((await ids()).length, 4)
})

t.test('a snapshot that was made while the clock was behind goes alone, and takes none with it that was made before', async (t) => {
  const { clock, set, get, list } = await scheduled(t)
  await set({ retention: { max_age: '48h' } })
  for (let hours = 0; hours < 2; hours++) await clock.pass(HOUR)
  const before = (await list()).map(({ id }) => id)
  const behind = 10 * 365 * 24 * HOUR
  clock.ms -= behind
  for (let hours = 0; hours < 2; hours++) await clock.pass(HOUR)
  const wrong = (await get())['last_snapshot_id']
  t.notOk(before.includes(wrong))
  clock.ms += behind
  for (let hours = 0; hours < 3; hours++) await clock.pass(HOUR)
  const after = (await list()).map(({ id }) => id)
  t.notOk(after.includes(wrong))
  t.same(before.filter((id) => !after.includes(id)), [])
})

for (const [where, days] of [['ahead', 30], ['behind', -30]] as const) {
  t.test(`of snapshots that were made while the clock was ${where} the oldest go first, as of any others`, async (t) => {
    const { clock, set, get, list } = await scheduled(t)
    await set({ retention: { max_count: 2 } })
    const made: unknown[] = []
    const run = async (): Promise<void> => {
      const before = (await get())['last_snapshot_id']
      // A clock that was put back has the first look plan the run anew.
      for (let looks = 0; looks < 3 && (await get())['last_snapshot_id'] === before; looks++) await clock.pass(HOUR)
      made.push((await get())['last_snapshot_id'])
    }
    clock.ms += days * 24 * HOUR
    for (let runs = 0; runs < 3; runs++) await run()
    clock.ms -= days * 24 * HOUR
    await run()
    t.equal(new Set(made).size, 4)
    t.same((await list()).map(({ id }) => id).sort(), made.slice(2).sort())
    await run()
    t.same((await list()).map(({ id }) => id).sort(), made.slice(3).sort())
  })
}
