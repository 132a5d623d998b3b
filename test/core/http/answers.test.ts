// What all answers have in common: origins, limits on requests, entity tags, compression.
import { gunzipSync } from 'node:zlib'
import { Readable } from 'node:stream'
import t from 'tap'
import { startTestHttp } from '../../helpers/http.ts'

const READ = { config: { scope: 'instance:read' } }
const ORIGIN = 'https://console.example.com'

t.test('pages of other origins get nothing unless their origin is configured', async (t) => {
  const closed = await startTestHttp(t, (app) => { app.get('/things', READ, async () => []) })
  const plain = await closed.send({ url: '/things', headers: { origin: ORIGIN } })
  t.equal(plain.statusCode, 200)
  t.equal(plain.headers['access-control-allow-origin'], undefined)
  t.equal((await closed.app.inject({ method: 'OPTIONS', url: '/things', headers: { origin: ORIGIN, 'access-control-request-method': 'GET' } })).statusCode, 405)
})

t.test('pages of a configured origin can ask, and read refusals', async (t) => {
  const open = await startTestHttp(t, (app) => { app.get('/things', READ, async () => []) }, { origins: [ORIGIN] })
  const first = await open.app.inject({ method: 'OPTIONS', url: '/things', headers: { origin: ORIGIN, 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' } })
  t.match(first, { statusCode: 204, headers: { 'access-control-allow-origin': ORIGIN, 'access-control-allow-headers': 'authorization' } })
  t.equal((await open.send({ url: '/things', headers: { origin: ORIGIN } })).headers['access-control-allow-origin'], ORIGIN)
  t.match(await open.app.inject({ url: '/things', headers: { origin: ORIGIN } }), { statusCode: 401, headers: { 'access-control-allow-origin': ORIGIN } })
  t.equal((await open.send({ url: '/things', headers: { origin: 'https://evil.example.com' } })).headers['access-control-allow-origin'], undefined)
  t.equal((await open.send({ url: '/nothing' })).statusCode, 404)
  t.equal((await open.send({ method: 'POST', url: '/things' })).statusCode, 405)
})

t.test('a key has a bounded number of requests when the operator says so, each its own', async (t) => {
  const { app, send, keys } = await startTestHttp(t, (app) => { app.get('/things', READ, async () => []) }, { requestsPerMinute: 3 })
  for (let count = 0; count < 3; count += 1) t.equal((await send({ url: '/things' })).statusCode, 200)
  const refused = await send({ url: '/things' })
  t.match(refused, { statusCode: 429, headers: { 'retry-after': /^\d+$/ } })
  t.match(refused.json(), { code: 'rate_limited', message: /made its 3 requests/ })
  t.equal(refused.headers['x-should-retry'], undefined)
  t.equal((await app.inject('/health')).statusCode, 200)
  const other = await keys.create({ name: 'other', scopes: ['*'] })
  t.equal((await app.inject({ url: '/things', headers: { authorization: `Bearer ${other.key}` } })).statusCode, 200)
})

t.test('a read has an entity tag, and what has not changed is not sent again', async (t) => {
  let things = ['a']
  const { send } = await startTestHttp(t, (app) => { app.get('/things', READ, async () => things) })
  const first = await send({ url: '/things' })
  const etag = String(first.headers.etag)
  t.match(etag, /^W\/"/)
  t.match(await send({ url: '/things', headers: { 'if-none-match': etag } }), { statusCode: 304, body: '' })
  things = ['b']
  t.match(await send({ url: '/things', headers: { 'if-none-match': etag } }), { statusCode: 200 })
})

t.test('large answers to reads are compressed for those who accept it; small ones, streams and other answers are not', async (t) => {
  const large = Array.from({ length: 3000 }, (_, index) => `item ${index}`)
  const { send } = await startTestHttp(t, (app) => {
    app.get('/large', READ, async () => large)
    app.get('/small', READ, async () => ['a'])
    app.post('/large', READ, async () => large)
    app.get('/stream', { config: { ...READ.config, produces: 'text/event-stream' } }, async (_request, reply) => await reply.type('text/event-stream').send(Readable.from([`data: ${JSON.stringify(large)}\n\n`])))
  })
  const headers = { 'accept-encoding': 'gzip' }
  const packed = await send({ url: '/large', headers })
  t.match(packed.headers, { 'content-encoding': 'gzip', vary: /accept-encoding/i })
  t.same(JSON.parse(gunzipSync(packed.rawPayload).toString()), large)
  const plain = await send({ url: '/large' })
  t.equal(plain.headers['content-encoding'], undefined)
  t.equal(plain.headers.etag, packed.headers.etag)
  for (const request of [{ url: '/small' }, { url: '/stream' }, { method: 'POST', url: '/large' }] as const) t.equal((await send({ ...request, headers })).headers['content-encoding'], undefined, JSON.stringify(request))
})
