// The server's own log over the API.
import t from 'tap'
import type { HostLog, HostLogLine } from '../../../plugins/host/schemas.ts'
import { startHost } from './app.ts'

const HOSTILE = ['<img src=x onerror=alert(1)>', '\u001b[2J\u001b]0;title\u0007', 'a\nb\r\nc\u0000d\u2028e', '\ud800 alone', '"}],"entries":[{"id":"x', 'data: x\n\nevent: missed\ndata: {}']

t.test('the newest lines come oldest first, by count, level and time, with all that they say but secrets', async (t) => {
  const { app: { log }, get } = await startHost(t, { log: { level: 'debug' } })
  for (let number = 0; number < 5; number++) log.debug({ number }, 'counted')
  log.child({ plugin: 'x' }).warn({ password: 'of-gold', err: new Error('broken') }, 'a warning')
  log.error('an error')
  const all = await get<HostLog>('/host/log')
  t.equal(all.status, 200)
  const last = all.body.entries.slice(-7)
  t.match(last, [...Array.from({ length: 5 }, (_each, number) => ({ level: 'debug', message: 'counted', fields: { number } })), { level: 'warn', message: 'a warning', fields: { plugin: 'x', password: '***', err: { message: 'broken' }, pid: process.pid } }, { level: 'error', message: 'an error' }])
  t.equal(new Set(all.body.entries.map(({ id }) => id)).size, all.body.entries.length)
  t.equal(all.body.kept_since, all.body.entries[0]?.time)
  t.notMatch(all.text, 'of-gold')
  t.match((await get<HostLog>('/host/log?limit=2&level=info')).body.entries.map(({ message }) => message), ['a warning', 'an error'])
  t.same((await get<HostLog>('/host/log?level=error')).body.entries.map(({ message }) => message), ['an error'])
  t.same((await get<HostLog>('/host/log?level=warn&limit=1')).body.entries.map(({ message }) => message), ['an error'])
  const later = new Date(Date.now() + 60_000).toISOString()
  t.same((await get<HostLog>(`/host/log?since=${later}`)).body.entries, [])
  t.ok((await get<HostLog>(`/host/log?since=${last[0]?.time ?? ''}`)).body.entries.length >= 7)
  for (const query of ['limit=0', 'limit=10001', 'level=loud', 'since=yesterday', 'since=2030-01-31T12:00:00%2B01', 'since=2016-12-31T23:59:60Z', 'unknown=1']) t.match(await get(`/host/log?${query}`), { status: 400, body: { code: 'invalid_request' } }, query)
})

t.test('hostile text stays text: no line can end an event, an answer or another line', async (t) => {
  const { app: { log }, get, follow } = await startHost(t)
  for (const text of HOSTILE) log.info({ name: text }, text)
  log.info({ long: 'x'.repeat(2 ** 20) }, '<b>long</b>')
  const { body: { entries } } = await get<HostLog>(`/host/log?limit=${HOSTILE.length + 1}`)
  const seen = (lines: readonly HostLogLine[]): unknown[] => lines.slice(0, -1).flatMap(({ message, fields }) => [message, fields['name']])
  // Half a character is none, in UTF-8.
  const wellFormed = (text: unknown): string => Buffer.from(String(text)).toString()
  t.same(seen(entries).map(wellFormed), HOSTILE.flatMap((text) => [wellFormed(text), wellFormed(text)]))
  t.match(entries.at(-1), { message: '<b>long</b>', fields: { cut: Number } })
  const followed: HostLogLine[] = []
  for await (const { event, data } of follow(`/host/log/stream?limit=${HOSTILE.length + 1}`)) {
    t.equal(event, undefined)
    if (followed.push(data as HostLogLine) === entries.length) break
  }
  t.same(followed, entries)
})

t.test('the log is followed as it comes, and gone on with behind the line that was seen last', async (t) => {
  const { app: { log }, follow } = await startHost(t)
  log.info('one')
  log.warn('two')
  const stream = follow('/host/log/stream?limit=1&level=warn')
  const next = async (): Promise<HostLogLine> => (await stream.next()).value?.data as HostLogLine
  const two = await next()
  t.equal(two.message, 'two')
  log.info('not important enough')
  log.error('three')
  t.equal((await next()).message, 'three')
  await stream.return(undefined)
  const again = follow('/host/log/stream', { 'last-event-id': two.id })
  t.same([await again.next(), await again.next()].map(({ value }) => (value?.data as HostLogLine).message), ['not important enough', 'three'])
  await again.return(undefined)
  const other = follow('/host/log/stream?limit=0', { 'last-event-id': 'another-run-7' })
  t.not((await other.next()).value, undefined, 'to a client of an earlier run of the server, all is new')
  await other.return(undefined)
})

t.test('a client that reads too slowly is told how many lines it has missed', async (t) => {
  const { app: { log }, follow } = await startHost(t, { log: { recent: '32KB' } })
  const stream = follow('/host/log/stream?limit=1')
  t.ok((await stream.next()).value)
  // In one turn of the event loop, in which nobody reads.
  for (let number = 0; number < 2000; number++) log.info({ number }, 'flood')
  log.info('end')
  let missed = 0
  let read = 0
  for await (const { event, data } of stream) {
    if (event === 'missed') missed += (data as { lines: number }).lines
    else if ((data as HostLogLine).message === 'end') break
    else read++
  }
  t.equal(missed + read, 2000)
  t.ok(missed > 1000, `${missed} missed`)
})

t.test('a key reads the log only with a scope of its own, and so many follow it at most', async (t) => {
  const { get, keyFor, follow } = await startHost(t, { config: { maxFollowers: 4 } })
  const [looker, reader, nobody] = [await keyFor('host:read'), await keyFor('host-log:read'), await keyFor('resource:read')]
  const statuses = async (key: string): Promise<number[]> => await Promise.all(['/host/processes', '/host/checks', '/host/log'].map(async (path) => (await get(path, key)).status))
  t.same(await statuses(looker), [200, 200, 403])
  t.same(await statuses(reader), [403, 403, 200])
  t.same(await statuses(nobody), [403, 403, 403])
  const open = follow('/host/log/stream')
  await open.next()
  t.match(await get('/host/log/stream'), { status: 429, body: { code: 'too_many_streams', message: /plugins\.host\.config\.maxFollowers/ } })
  const other = follow('/host/log/stream', { authorization: `Bearer ${reader}` })
  t.notOk((await other.next()).done, 'another key has room: one has a quarter')
  await other.return(undefined)
  await open.return(undefined)
})

t.test('a server that keeps nothing of its log says so by an empty answer', async (t) => {
  const { get } = await startHost(t, { log: { recent: '0B' } })
  t.same((await get<HostLog>('/host/log')).body, { entries: [], kept_since: null })
})
