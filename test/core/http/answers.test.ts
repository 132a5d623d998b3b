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
  const exposed = String((await open.send({ url: '/things', headers: { origin: ORIGIN } })).headers['access-control-expose-headers']).toLowerCase().split(', ')
  for (const name of ['etag', 'retry-after', 'x-request-id', 'x-should-retry', 'x-trace-id']) t.ok(exposed.includes(name), name)
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
  const token = keys.issueEphemeral('token', ['*'], 60_000, undefined, { id: other.record.id, name: 'other', scopes: ['*'] })
  const byToken: number[] = []
  for (let count = 0; count < 3; count += 1) byToken.push((await app.inject({ url: '/things', headers: { authorization: `Bearer ${token.key}` } })).statusCode)
  t.same(byToken, [200, 200, 429], 'a token counts for the key that it stands for')
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

t.test('a change with If-Match is made only to the version that its sender has seen', async (t) => {
  const thing = { id: 'one', count: 0 }
  let isThere = true
  const { app, keys, send } = await startTestHttp(t, (app) => {
    app.get('/things/:id', READ, async (_request, reply) => isThere ? thing : await reply.code(404).send({ code: 'not_found', message: 'nothing' }))
    app.patch('/things/:id', { config: { scope: 'instance:write' } }, async () => {
      const { count } = thing
      await new Promise((resolve) => { setImmediate(resolve) })
      thing.count = count + 1
      return thing
    })
    app.put('/things/:id', { config: { scope: 'instance:write' } }, async () => thing)
    app.delete('/things/:id', { config: { scope: 'instance:write' } }, async (_request, reply) => reply.code(isThere ? 204 : 404).send())
    app.delete('/things/:id/parts', { config: { scope: 'instance:write' } }, async () => null)
  })
  const etag = String((await send({ url: '/things/one' })).headers.etag)
  const patch = async (match: string, headers: Record<string, string> = {}) => await send({ method: 'PATCH', url: '/things/one', headers: { 'if-match': match, ...headers } })
  const first = await patch(etag)
  t.match(first, { statusCode: 200, body: '{"id":"one","count":1}' })
  t.equal((await send({ url: '/things/one' })).headers.etag, first.headers.etag, 'an answer to a change has the tag of what it made')
  const refused = await patch(etag)
  t.match(refused, { statusCode: 412, headers: { etag: first.headers.etag, 'x-should-retry': 'false' } })
  t.match(refused.json(), { code: 'precondition_failed' })
  for (const version of [etag, String(first.headers.etag)]) t.ok(refused.json().message.includes(version), 'it names both versions')
  t.equal(thing.count, 1)
  const strong = String(first.headers.etag).slice(2)
  t.match(await patch(`"other", ${strong}`), { statusCode: 200 })
  t.match(await patch('*'), { statusCode: 200 })
  t.match(await send({ method: 'DELETE', url: '/things/one', headers: { 'if-match': etag } }), { statusCode: 412 })
  for (const wrong of ['', 'x', '"', `${'"a",'.repeat(30)}"a"`]) t.match(await patch(wrong), { statusCode: 400 }, wrong)
  t.match(await send({ method: 'DELETE', url: '/things/one/parts', headers: { 'if-match': '*' } }), { statusCode: 400 })

  // By whatever name it is called, and however many come at the same time.
  const now = String((await send({ url: '/things/one' })).headers.etag)
  const before = thing.count
  const answers = await Promise.all(Array.from({ length: 10 }, async (_, index) => await send({ method: 'PATCH', url: `/things/name-${index}`, headers: { 'if-match': now } })))
  t.same(answers.map(({ statusCode }) => statusCode).sort(), [200, ...Array.from({ length: 9 }, () => 412)])
  t.equal(thing.count, before + 1)

  const writer = await keys.create({ name: 'writer', scopes: ['instance:write'] })
  t.match(await patch('*', { authorization: `Bearer ${writer.key}` }), { statusCode: 403, headers: { 'x-should-retry': 'false' } })
  isThere = false
  t.match(await send({ method: 'DELETE', url: '/things/one', headers: { 'if-match': '*' } }), { statusCode: 404 })
  t.match(await send({ method: 'PUT', url: '/things/one', headers: { 'if-match': '*' } }), { statusCode: 412 })
  t.match(await app.inject({ method: 'PATCH', url: '/things/one', headers: { 'if-match': '*' } }), { statusCode: 401 })
})

t.test('a look at a version and the change to it are one step, also for changes that name no version', { timeout: 30_000 }, async (t) => {
  const thing = { id: 'abcdef', name: 'web', count: 0 }
  const WRITE = { config: { scope: 'instance:write' } }
  const gates: Array<() => void> = []
  const change = async (): Promise<typeof thing> => {
    const { count } = thing
    await new Promise<void>((resolve) => { gates.push(resolve) })
    thing.count = count + 1
    return thing
  }
  const { send } = await startTestHttp(t, (app) => {
    app.get('/things/:id', READ, async () => thing)
    app.get('/things/:id/part', READ, async () => ({ part: thing.count }))
    app.patch('/things/:id', WRITE, change)
    app.put('/things/:id/part', WRITE, change)
    app.post('/things/:id/stop', WRITE, change)
    app.post('/things/:id/refused', WRITE, async () => { throw new Error('refused') })
    app.post('/things', { config: { scope: 'instance:write', replaces: '/things/:id' } }, change)
    app.get('/others/:id', READ, async () => ({ id: 'abcdef' }))
    app.patch('/others/:id', WRITE, async () => 'another thing')
  })
  const version = async (url = '/things/web'): Promise<string> => String((await send({ url })).headers.etag)
  const patch = async (ref: string, match?: string) => await send({ method: 'PATCH', url: `/things/${ref}`, headers: match === undefined ? {} : { 'if-match': match } })
  const reaches = async (count: number): Promise<void> => { while (gates.length < count) await new Promise((resolve) => { setImmediate(resolve) }) }
  const rounds = async (): Promise<void> => { for (let round = 0; round < 200; round++) await new Promise((resolve) => { setImmediate(resolve) }) }
  const open = (): void => { gates.splice(0).forEach((gate) => { gate() }) }

  for (const ref of ['web', 'abc', 'abcdef']) {
    for (const [method, path] of [['PATCH', ''], ['POST', '/stop'], ['PUT', '/part']] as const) {
      const name = `${method} ${ref}${path}`
      const seen = await version()
      const before = thing.count

      // The one without a version first: the other must see what it makes.
      const plain = send({ method, url: `/things/${ref}${path}` })
      await reaches(1)
      const conditional = patch('web', seen)
      await rounds()
      t.equal(gates.length, 1, `${name}: one with If-Match waits for it`)
      open()
      t.match(await plain, { statusCode: 200 })
      t.match(await conditional, { statusCode: 412 })
      t.equal(thing.count, before + 1)

      // The one with a version first: the other waits until its change is made.
      const first = patch('abcdef', await version())
      await reaches(1)
      const second = send({ method, url: `/things/${ref}${path}` })
      await rounds()
      t.equal(gates.length, 1, `${name}: it waits for one with If-Match`)
      t.match(await send({ method: 'PATCH', url: '/others/abcdef' }), { statusCode: 200 })
      open()
      t.match(await first, { statusCode: 200 })
      await reaches(1)
      open()
      t.match(await second, { statusCode: 200 })
      t.equal(thing.count, before + 3, 'neither change was lost')
    }
  }

  // What is a part of a thing has a version of its own, and changes with the thing.
  const part = send({ method: 'PUT', url: '/things/abc/part', headers: { 'if-match': await version('/things/web/part') } })
  await reaches(1)
  const other = patch('web')
  await rounds()
  t.equal(gates.length, 1)
  open()
  t.match(await part, { statusCode: 200 })
  await reaches(1)
  open()
  t.match(await other, { statusCode: 200 })

  // One that may replace any of them, as its path names none.
  const seen = await version()
  const replacing = send({ method: 'POST', url: '/things' })
  await reaches(1)
  const late = patch('web', seen)
  await rounds()
  t.equal(gates.length, 1, 'one with If-Match waits for one that replaces')
  open()
  t.match(await replacing, { statusCode: 200 })
  t.match(await late, { statusCode: 412 })
  const early = patch('web', await version())
  await reaches(1)
  const waiting = send({ method: 'POST', url: '/things' })
  await rounds()
  t.equal(gates.length, 1, 'and the other way round')
  open()
  t.match(await early, { statusCode: 200 })
  await reaches(1)
  open()
  t.match(await waiting, { statusCode: 200 })

  // Those that name no version go beside one another, and one that fails lets the next go on.
  const both = [patch('web'), patch('abc')]
  await reaches(2)
  open()
  await Promise.all(both)
  t.match(await send({ method: 'POST', url: '/things/web/refused' }), { statusCode: 500 })
  const last = patch('web', await version())
  await reaches(1)
  open()
  t.match(await last, { statusCode: 200 })
})
