// GET /events and /events/snapshot over HTTP.
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { eventually } from '../../helpers/eventually.ts'
import { eventsUntil, readEvents, type Seen } from './reader.ts'
import { startWithThings, type ThingsApp } from './things.ts'

const isOf = (id: string) => (event: Seen): boolean => event.data?.id === id

async function snapshotOf ({ app }: ThingsApp, query = '', key = ADMIN_KEY): Promise<{ status: number, body: { id: string, resources: unknown[], code?: string, details?: { code: string, message: string }[] } }> {
  const answer = await fetch(`${app.address()}/events/snapshot${query}`, { headers: { authorization: `Bearer ${key}` } })
  return { status: answer.status, body: JSON.parse(await answer.text()) }
}

t.test('a stream begins with its window, tells each change, and goes on where a client left', async (t) => {
  const run = await startWithThings(t, { config: { maxEvents: 1000, maxAge: '2h' } })
  const url = `${run.app.address()}/events`
  const { body } = await snapshotOf(run)
  await run.things.make('a', { team: 'x' })
  await run.things.set('a', '1')
  const events = await eventsUntil(url, ADMIN_KEY, body.id, ({ data }) => data?.status === '1')
  t.match(events, [
    { type: 'ready', id: body.id, window: { oldest_id: String, newest_id: String, max_events: 1000, max_age_seconds: 7200 } },
    { type: 'thing.created', id: /^\d+$/, timestamp: /^20.*Z$/, data: { resource: 'thing', id: 'a', name: 'name-of-a', status: '0', tags: { team: 'x' } } },
    { type: 'thing.updated', data: { status: '1' } }
  ])
  t.equal(events.length, 3)
  const [, created] = events
  t.match(await eventsUntil(`${url}?after=${created?.id}`, ADMIN_KEY, undefined, isOf('a')), [{ type: 'ready' }, { type: 'thing.updated' }])
  let live: Seen | undefined
  await readEvents(url, ADMIN_KEY, undefined, async (event) => {
    if (event.type === 'ready') await run.things.make('b')
    live = event
    return isOf('b')(event)
  })
  t.match(live, { type: 'thing.created', data: { id: 'b' } })
  t.match(await snapshotOf(run, '?id=b'), { status: 200, body: { resources: [{ resource: 'thing', id: 'b', status: '0' }] } })
})

t.test('filters take kinds, ids, their beginnings, names and tags', async (t) => {
  const run = await startWithThings(t)
  const url = `${run.app.address()}/events`
  const { body } = await snapshotOf(run)
  for (const id of ['one', 'other', 'two']) await run.things.make(id, { n: id })
  await run.things.make('end', { n: 'end' })
  const ids = async (query: string, last: string): Promise<unknown[]> => (await eventsUntil(`${url}?${query}`, ADMIN_KEY, body.id, isOf(last))).flatMap(({ data }) => data === undefined ? [] : [data.id])
  t.same(await ids('id=o', 'other'), ['one', 'other'])
  t.same(await ids('id=two', 'two'), ['two'])
  t.same(await ids('id=name-of-end', 'end'), ['end'])
  t.same(await ids('tags[n]=two', 'two'), ['two'])
  t.same(await ids('resource=thing', 'end'), ['one', 'other', 'two', 'end'])
  await t.rejects(ids('resource=nothing', 'end'), /400.*nothing has no events; there are thing/)
})

t.test('a caller hears only of what its scopes may read, and nothing once its key has ended', async (t) => {
  const run = await startWithThings(t, { config: { heartbeat: '50ms' } })
  const url = `${run.app.address()}/events`
  const { body } = await snapshotOf(run)
  await run.things.make('a')
  const { apiKeys } = run
  const blind = apiKeys.issueEphemeral('blind', ['image:read'], 60_000)
  const seeing = apiKeys.issueEphemeral('seeing', ['volume:read'], 60_000)
  t.match(await eventsUntil(url, seeing.key, body.id, isOf('a')), [{ type: 'ready' }, { type: 'thing.created' }])
  t.same((await snapshotOf(run, '', blind.key)).body.resources, [])
  const heard: Seen[] = []
  const stream = readEvents(url, blind.key, body.id, (event) => {
    heard.push(event)
    if (event.type === 'bookmark') blind.revoke()
    return false
  })
  // The server ends the stream, or core the connection, whoever is first.
  await stream.catch(() => undefined)
  t.match(heard, [{ type: 'ready' }, { type: 'bookmark' }], 'it is told how far it is, and the stream ends with its key')
  t.equal((await fetch(url)).status, 401)
})

t.test('an id that has left the window is 410, which says what to do', async (t) => {
  const run = await startWithThings(t, { config: { maxEvents: 100 } })
  const url = `${run.app.address()}/events`
  const { body } = await snapshotOf(run)
  await run.things.make('a')
  for (let status = 0; status < 300; status++) await run.things.set('a', String(status))
  const resumed = async (): Promise<Response> => await fetch(url, { headers: { authorization: `Bearer ${ADMIN_KEY}`, 'last-event-id': body.id } })
  const refusal = await eventually('the first events have been removed', async () => {
    const answer = await resumed()
    if (answer.status === 410) return answer
    await answer.body?.cancel()
    return undefined
  })
  t.match(await refusal.json(), { code: 'events_expired', message: /GET \/events\/snapshot/, details: [{ code: 'oldest_id', message: /^\d+$/ }, { code: 'newest_id' }] })
  const fresh = await snapshotOf(run)
  t.match(fresh.body.resources, [{ id: 'a', status: '299' }])
  const next = eventsUntil(url, ADMIN_KEY, fresh.body.id, isOf('b'))
  await run.things.make('b')
  t.match(await next, [{ type: 'ready' }, { type: 'thing.created', data: { id: 'b' } }])
})

t.test('no more streams are opened than allowed', async (t) => {
  const run = await startWithThings(t, { config: { maxStreams: 1 } })
  const url = `${run.app.address()}/events`
  const stop = new AbortController()
  const first = await fetch(url, { headers: { authorization: `Bearer ${ADMIN_KEY}` }, signal: stop.signal })
  t.equal(first.status, 200)
  await t.rejects(readEvents(url, ADMIN_KEY, undefined, () => true), /429.*too_many_streams/)
  stop.abort()
  await eventually('there is room again', async () => await readEvents(url, ADMIN_KEY, undefined, () => true).catch(() => undefined))
})

t.test('one key takes a quarter of the streams, and leaves the others to others', async (t) => {
  const run = await startWithThings(t, { config: { maxStreams: 8 } })
  const url = `${run.app.address()}/events`
  const stop = new AbortController()
  const open = async (key: string): Promise<Response> => await fetch(url, { headers: { authorization: `Bearer ${key}` }, signal: stop.signal })
  const [greedy, other] = [run.apiKeys.issueEphemeral('greedy', [], 60_000), run.apiKeys.issueEphemeral('other', [], 60_000)]
  const answers = await Promise.all(Array.from({ length: 8 }, async () => await open(greedy.key)))
  t.same(answers.map(({ status }) => status).sort(), [200, 200, 429, 429, 429, 429, 429, 429])
  t.match(await answers.find(({ status }) => status === 429)?.json(), { code: 'too_many_streams', message: /the key "greedy" has 2 .*plugins\.events\.config\.maxStreams/ })
  const token = run.apiKeys.issueEphemeral('token of greedy', [], 60_000, undefined, { id: greedy.id, name: 'greedy', scopes: [] })
  t.equal((await open(token.key)).status, 429, 'nor by a token that stands for it')
  for (const key of [other.key, ADMIN_KEY]) t.equal((await open(key)).status, 200)
  stop.abort()
  await eventually('there is room again', async () => await readEvents(url, greedy.key, undefined, () => true).catch(() => undefined))
})

t.test('a stream that waits asks the database for nothing, also after a restart', async (t) => {
  const first = await startWithThings(t)
  await first.things.make('a')
  await first.app.stop()
  const run = await startWithThings(t, { server: { dataDir: first.dataDir, listen: '127.0.0.1:0', apiKey: ADMIN_KEY, metrics: { enabled: false } } })
  let questions = 0
  run.database.on('query', ({ sql }: { sql: string }) => { if (sql.includes('events_journal')) questions++ })
  const url = `${run.app.address()}/events`
  const stop = new AbortController()
  const stream = await fetch(url, { headers: { authorization: `Bearer ${ADMIN_KEY}` }, signal: stop.signal })
  t.equal(stream.status, 200)
  await delay(300)
  stop.abort()
  t.ok(questions < 20, `${questions} questions`)
})

t.test('progress is told to those who listen, and stored nowhere', async (t) => {
  const run = await startWithThings(t)
  const url = `${run.app.address()}/events`
  const { body } = await snapshotOf(run)
  const events = eventsUntil(url, ADMIN_KEY, body.id, ({ type }) => type === 'thing.progress')
  const timer = setInterval(() => { run.things.changes.progress({ id: 'a', name: null, status: 'busy', tags: {}, details: { received_bytes: 5 } }) }, 10)
  t.teardown(() => { clearInterval(timer) })
  const [, progress] = await events
  t.match(progress, { type: 'thing.progress', data: { id: 'a', received_bytes: 5 } })
  t.equal(progress?.id, undefined)
  t.equal((await snapshotOf(run)).body.id, body.id)
})
