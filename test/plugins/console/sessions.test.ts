// Sessions of the console: who gets one, what it may do, and when it ends, against a real server.
import { once } from 'node:events'
import { mock } from 'node:test'
import fastify from 'fastify'
import t from 'tap'
import { WebSocket } from 'ws'
import { deferred } from '../../../core/jobs/deferred.ts'
import { Attempts } from '../../../plugins/console/sessions/attempts.ts'
import { sessionAuthenticator } from '../../../plugins/console/sessions/authenticator.ts'
import { Sessions } from '../../../plugins/console/sessions/sessions.ts'
import { Tickets } from '../../../plugins/console/sessions/tickets.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { startConsole } from './app.ts'

const DAY_MS = 24 * 3_600_000

await t.test('a key is exchanged for a cookie that scripts cannot read, and that does what the key may', async (t) => {
  const app = await startConsole(t)
  t.same((await app.call('GET', '/console/session')).body, { key: null })
  const session = await app.logIn()
  t.equal(session.status, 200)
  t.match(session.body, { key: { id: 'process', scopes: ['*'] } })
  t.match(session.setCookie, /^berth_session=[\w-]{43}; Path=\/; Max-Age=43\d\d\d; HttpOnly; SameSite=Strict$/)
  t.equal(session.headers.get('cache-control'), 'no-store')
  const { cookie } = session
  t.match((await app.call('GET', '/whoami', { cookie })).body, { id: 'process' })
  t.match((await app.call('GET', '/console/session', { cookie })).body, { key: { id: 'process' } })
  t.match(await app.call('POST', '/things', { cookie, body: {} }), { status: 200, body: { by: 'process' } })
  const asked = async (headers: Record<string, string>): Promise<string | null> => (await fetch(`${app.url}/whoami`, { headers })).headers.get('cache-control')
  t.equal(await asked({ cookie }), 'no-store', 'a cache between knows nothing of the cookie')
  t.equal(await asked({ authorization: `Bearer ${ADMIN_KEY}` }), null, 'and keeps nothing of a key that is presented')
  t.notOk(app.lines.some((line) => JSON.stringify(line).includes(ADMIN_KEY) || JSON.stringify(line).includes(cookie.slice(14))), 'neither is in the log')
  t.equal((await app.call('GET', '/whoami', { cookie, headers: { authorization: 'Bearer wrong' } })).status, 401, 'a key that is presented is what counts')
})

await t.test('what the key may not, the session may not', async (t) => {
  const app = await startConsole(t)
  const { key } = await app.makeKey({ name: 'reader', scopes: ['resource:read'] })
  const { cookie } = await app.logIn(key)
  t.match(await app.call('POST', '/things', { cookie, body: {} }), { status: 403, body: { message: 'missing required scope: thing:write' } })
  t.equal((await app.call('GET', '/plugins', { cookie })).status, 200)
})

await t.test('a page of somebody else cannot use the session', async (t) => {
  const app = await startConsole(t)
  const { cookie } = await app.logIn()
  const post = async (headers: Record<string, string | undefined>) => (await app.call('POST', '/things', { cookie, body: {}, headers })).status
  t.equal(await post({ 'x-berth-console': undefined }), 403, 'a form has no header')
  t.equal(await post({ 'x-berth-console': '0' }), 403)
  t.equal(await post({ origin: 'http://evil.test' }), 403)
  t.equal(await post({ origin: undefined }), 403)
  t.equal(await post({ origin: 'null' }), 403)
  t.equal(await post({ origin: app.origin.replace(/\d+$/, '1') }), 403, 'another port of the same host, which gets the cookie')
  t.equal(await post({ 'sec-fetch-site': 'same-site' }), 403)
  t.equal((await app.call('GET', '/whoami', { cookie, headers: { 'sec-fetch-site': 'same-site' } })).status, 403, 'nor look at anything')
  t.equal((await app.logIn(ADMIN_KEY, { origin: 'http://evil.test' })).status, 403, 'nor log somebody in')
  t.equal((await app.call('DELETE', '/console/session', { cookie, headers: { 'x-berth-console': undefined } })).status, 403, 'nor out')
  t.equal((await app.call('GET', '/whoami', { cookie })).status, 200)
})

await t.test('a log-in never goes on with what was there before', async (t) => {
  const app = await startConsole(t)
  const planted = `berth_session=${'A'.repeat(43)}`
  const first = await app.call('POST', '/console/session', { cookie: planted, body: { key: ADMIN_KEY } })
  t.not(first.cookie, planted)
  t.equal((await app.call('GET', '/whoami', { cookie: planted })).status, 401)
  const second = await app.call('POST', '/console/session', { cookie: first.cookie, body: { key: ADMIN_KEY } })
  t.not(second.cookie, first.cookie)
  t.equal((await app.call('GET', '/whoami', { cookie: first.cookie })).status, 401, 'the one before has ended')
  t.equal((await app.call('GET', '/whoami', { cookie: second.cookie })).status, 200)
})

await t.test('after the log-out the cookie is of no use, and streams have ended', { timeout: 60_000 }, async (t) => {
  const app = await startConsole(t)
  const { cookie } = await app.logIn()
  const stream = await fetch(`${app.url}/events`, { headers: { cookie } })
  t.equal(stream.status, 200)
  const ended = stream.text().catch(() => 'ended')
  const out = await app.call('DELETE', '/console/session', { cookie })
  t.equal(out.status, 204)
  t.match(out.setCookie, /^berth_session=; Path=\/; Max-Age=0; HttpOnly; SameSite=Strict$/)
  await ended
  t.match(await app.call('GET', '/whoami', { cookie }), { status: 401, body: { code: 'Unauthorized', message: /session has ended/ } })
})

await t.test('a session ends with its key at once: when it is revoked, with its streams and sockets', { timeout: 60_000 }, async (t) => {
  const app = await startConsole(t)
  const { id, key } = await app.makeKey({ name: 'short', scopes: ['thing:write'] })
  const { cookie } = await app.logIn(key)
  const { ticket } = (await app.call('POST', '/console/tickets', { cookie })).body
  const socket = await app.socket(cookie, ['berth', `ticket.${String(ticket)}`])
  if (!(socket instanceof WebSocket)) throw new Error(`refused with ${socket}`)
  const closed = once(socket, 'close')
  const stream = await fetch(`${app.url}/events`, { headers: { cookie } })
  const ended = stream.text().catch(() => 'ended')
  t.equal((await fetch(`${app.url}/keys/${id}`, { method: 'DELETE', headers: { authorization: `Bearer ${ADMIN_KEY}` } })).status, 204)
  t.match(await app.call('GET', '/whoami', { cookie }), { status: 401, body: { code: 'Unauthorized', message: /session has ended/ } })
  await Promise.all([closed, ended])
})

await t.test('a session lasts no longer than its key', async (t) => {
  const app = await startConsole(t)
  const { key } = await app.makeKey({ name: 'short', scopes: ['thing:write'], expires_in: '1h' })
  const { setCookie } = await app.logIn(key)
  t.match(setCookie, /Max-Age=3[56]\d\d;/)
})

await t.test('a WebSocket takes a ticket that was not used, besides the cookie', { timeout: 60_000 }, async (t) => {
  const app = await startConsole(t)
  const { cookie } = await app.logIn()
  const ticket = async (of = cookie) => `ticket.${String((await app.call('POST', '/console/tickets', { cookie: of })).body['ticket'])}`
  t.equal(await app.socket(cookie, ['berth']), 403, 'the cookie alone')
  const good = await ticket()
  t.equal(await app.socket('', ['berth', good]), 401, 'the ticket alone')
  const socket = await app.socket(cookie, ['berth', good])
  if (!(socket instanceof WebSocket)) throw new Error(`refused with ${socket}`)
  t.equal(socket.protocol, 'berth', 'the ticket is not what is agreed on')
  socket.send('hello')
  const [echo] = await once(socket, 'message') as [Buffer]
  t.equal(echo.toString(), 'hello')
  socket.close()
  t.equal(await app.socket(cookie, ['berth', good]), 403, 'a second time')
  t.equal(await app.socket(cookie, ['berth', await ticket()], 'http://evil.test'), 403, 'from another page')
  const other = await app.logIn()
  t.equal(await app.socket(cookie, ['berth', await ticket(other.cookie)]), 403, 'of another session')
  t.equal(await app.socket(cookie, [await ticket()]), 403, 'a ticket as the only protocol would be sent back')
  t.equal((await app.call('POST', '/console/tickets', { cookie, headers: { origin: 'http://evil.test' } })).status, 403)
})

await t.test('wrong keys are counted', async (t) => {
  const app = await startConsole(t)
  for (let n = 0; n < 10; n++) t.equal((await app.logIn(`wrong-${n}`)).status, 401)
  const refused = await app.logIn('wrong')
  t.match(refused, { status: 429, body: { code: 'too_many_attempts' } })
  t.match(refused.headers.get('retry-after'), /^\d+$/)
  t.equal((await app.logIn()).status, 200, 'a right key from the same address, which may be a proxy of many, is let in')
})

await t.test('without the plugin nothing of it is there, and cookies mean nothing', async (t) => {
  const { bareApp } = await import('../../core/bare-app.ts')
  const { app } = await bareApp(t)
  await app.start()
  for (const path of ['/console/', '/console/session']) t.equal((await fetch(app.address() + path)).status, 404)
  t.equal((await fetch(`${app.address()}/whoami`, { headers: { cookie: `berth_session=${'A'.repeat(43)}` } })).status, 401)
})

await t.test('sessions expire, by a clock that nobody sets, and one key has only so many', async (t) => {
  let now = 0
  const principal = { id: 'k', name: 'k', scopes: ['*'] }
  const sessions = new Sessions({ apiKeys: { current: async () => principal, whenEnded: () => () => {} }, lifetimeMs: 1000, maxPerKey: 2, elapsed: () => now, clock: () => 5 })
  const made = [1, 2, 3].map(() => sessions.begin(principal))
  t.same(made.map(({ secret }) => sessions.find(secret) !== undefined), [false, true, true], 'the oldest makes room')
  let closed = 0
  const last = made[2]
  if (last !== undefined) sessions.whenEnded(last.session, () => { closed++ })
  now = 999
  t.ok(sessions.find(last?.secret ?? ''))
  now = 1000
  t.notOk(sessions.find(last?.secret ?? ''))
  t.equal(closed, 1)
  t.notOk(sessions.find('x'.repeat(5000)))
  sessions.endAll()
  t.equal(sessions.size, 0)
})

await t.test('a request whose session ends while its key is looked up is refused, and nothing opens with it any more', async (t) => {
  const principal = { id: 'k', name: 'k', scopes: ['*'] }
  const [looking, found] = [deferred(), deferred()]
  const current = async () => {
    looking.resolve()
    await found.promise
    return principal
  }
  const sessions = new Sessions({ apiKeys: { current, whenEnded: () => () => {} }, lifetimeMs: DAY_MS, maxPerKey: 2 })
  const { secret, session } = sessions.begin(principal)
  const authenticate = sessionAuthenticator(sessions, new Tickets())
  const app = fastify()
  t.teardown(async () => { await app.close() })
  app.get('/stream', { config: { scope: null, produces: 'text/event-stream' }, onRequest: async (request, reply) => { await authenticate(request, reply) } }, () => 'here')
  const answer = app.inject({ url: '/stream', headers: { cookie: `berth_session=${secret}`, 'x-berth-console': '1', 'sec-fetch-site': 'same-origin' } })
  await looking.promise
  sessions.end(session.id)
  found.resolve()
  t.match((await answer).json(), { message: /session has ended/ })
  let isOpen = true
  sessions.whenEnded(session, () => { isOpen = false })
  t.notOk(isOpen, 'what begins with a session that has ended is closed at once')
  t.equal(session.open.size, 0)
})

await t.test('what is open with a session ends with it, also when it lasts longer than a timer can', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => { mock.timers.reset() })
  let elapsed = 0
  const sessions = new Sessions({ apiKeys: { current: async () => undefined, whenEnded: () => () => {} }, lifetimeMs: 60 * DAY_MS, maxPerKey: 1, clock: () => elapsed, elapsed: () => elapsed })
  const { session } = sessions.begin({ id: 'key', name: 'key', scopes: ['*'] })
  let isOpen = true
  sessions.whenEnded(session, () => { isOpen = false })
  for (let day = 1; day <= 61; day++) {
    elapsed += DAY_MS
    mock.timers.tick(DAY_MS)
    if (day === 59) t.ok(isOpen)
  }
  t.notOk(isOpen)
})

await t.test('tickets are void after half a minute, and attempts forgotten after one', async (t) => {
  let now = 0
  const tickets = new Tickets(() => now)
  const late = tickets.issue('s')
  now = 30_000
  t.notOk(tickets.redeem(late, 's'))
  const many = Array.from({ length: 40 }, () => tickets.issue('s'))
  t.equal(many.filter((ticket) => tickets.redeem(ticket, 's')).length, 32)
  const attempts = new Attempts(() => now)
  for (let n = 0; n < 10; n++) t.equal(attempts.note('a'), 0)
  t.equal(attempts.note('a'), 60)
  t.equal(attempts.note('b'), 0, 'another address is not held up')
  now += 60_000
  t.equal(attempts.note('a'), 0)
})
