import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { Type } from 'typebox'
import { WebSocket } from 'ws'
import { defineError } from '../../../core/errors/define.ts'
import { InvalidState, NotFound } from '../../../core/errors/common.ts'
import { startMetricsListener } from '../../../core/http/metrics-listener.ts'
import { namedSchema } from '../../../core/http/schemas.ts'
import { createLog } from '../../../core/logging/log.ts'
import { API_VERSION } from '../../../core/version.ts'
import { eventually } from '../../helpers/eventually.ts'
import { startTestHttp } from '../../helpers/http.ts'

const Broken = defineError('broken_disk', 'internal', (path: string) => `cannot write ${path}`)
const Busy = defineError('host_busy', 'unavailable', () => 'no free slot on this host')

t.test('a route needs a key, and a key needs the scope', async (t) => {
  const { app, keys, key } = await startTestHttp(t, (app) => {
    app.get('/things', { config: { scope: 'instance:write' } }, async (request) => request.principal)
  })
  const get = async (authorization?: string): Promise<{ status: number, body: unknown, challenge: unknown }> => {
    const response = await app.inject({ url: '/things', headers: authorization === undefined ? {} : { authorization } })
    return { status: response.statusCode, body: response.json(), challenge: response.headers['www-authenticate'] }
  }
  const challenge = 'Bearer realm="berth"'
  t.same(await get(), { status: 401, body: { code: 'Unauthorized', message: 'authorization header required' }, challenge })
  t.same(await get('Basic dTpw'), { status: 401, body: { code: 'Unauthorized', message: 'invalid authorization header format' }, challenge })
  t.same(await get('Bearer nonsense'), { status: 401, body: { code: 'Unauthorized', message: 'invalid token' }, challenge })
  t.same(await get(`Bearer ${'x'.repeat(257)}`), { status: 401, body: { code: 'Unauthorized', message: 'invalid token' }, challenge })
  const reader = await keys.create({ name: 'reader', scopes: ['instance:read'] })
  t.same(await get(`Bearer ${reader.key}`), { status: 403, body: { code: 'Forbidden', message: 'missing required scope: instance:write' }, challenge: undefined })
  const writer = await keys.create({ name: 'writer', scopes: ['instance:write'] })
  t.match(await get(`Bearer ${writer.key}`), { status: 200, body: { name: 'writer' } })
  t.match(await get(`bearer ${key}`), { status: 200, body: { name: 'test' } })
  await keys.revoke(writer.record.id)
  t.match(await get(`Bearer ${writer.key}`), { status: 401 })
})

t.test('the key is checked before the body is read', async (t) => {
  const { app } = await startTestHttp(t, (app) => { app.post('/things', { config: { scope: 'instance:write' } }, async () => ({})) })
  const response = await app.inject({ method: 'POST', url: '/things', headers: { 'content-type': 'application/json' }, body: '{' })
  t.equal(response.statusCode, 401)
})

t.test('a route that does not say its scope is not mounted', async (t) => {
  const { app } = await startTestHttp(t, (app) => { app.get('/things', async () => 'open') })
  await t.rejects(async () => { await app.ready() }, /route GET \/things lacks config\.scope/)
})

t.test('errors of each kind become answers, and 409 says not to try again', async (t) => {
  const { send, logged } = await startTestHttp(t, (app) => {
    const open = { config: { scope: null } }
    app.get('/state', { config: { scope: null, errors: [InvalidState] } }, async () => { throw InvalidState('instance must be running') })
    app.get('/busy', { config: { scope: null, errors: [Busy] } }, async () => { throw Busy() })
    app.get('/disk', open, async () => { throw Broken('/secret/path') })
    app.get('/bug', open, async () => { throw new TypeError('hunter2') })
    app.get('/thrown', open, async () => { throw 'hunter2' }) // eslint-disable-line no-throw-literal
    app.get('/schema', { ...open, schema: { response: { 200: Type.Object({ a: Type.Integer() }) } } }, async () => ({ a: 'hunter2' }))
  })
  const conflict = await send({ url: '/state' })
  t.match(conflict, { statusCode: 409, headers: { 'x-should-retry': 'false' } })
  t.same(conflict.json(), { code: 'invalid_state', message: 'instance must be running' })
  const busy = await send({ url: '/busy' })
  t.equal(busy.statusCode, 503)
  t.same(busy.json(), { code: 'host_busy', message: 'no free slot on this host' })
  t.equal(busy.headers['x-should-retry'], undefined)
  logged.length = 0
  for (const url of ['/disk', '/bug', '/thrown', '/schema']) {
    const response = await send({ url, headers: { 'x-request-id': `id-of${url.replace('/', '-')}` } })
    t.equal(response.statusCode, 500, url)
    t.same(response.json(), { code: 'internal_error', message: `the server failed; its log has the cause under the request id id-of-${url.slice(1)}` })
  }
  t.equal(logged.length, 4, 'each failure is logged once')
  t.match(logged[0], { level: 'error', reqId: 'id-of-disk', method: 'GET', path: '/disk', err: { message: 'cannot write /secret/path' } })
})

t.test('what will never work says not to try again, and is no error in the log; what may work later does not', async (t) => {
  const { send, logged } = await startTestHttp(t, (app) => {
    const open = { config: { scope: null } }
    const Cannot = defineError('not_supported', 'unsupported', () => 'not on this host')
    const TooMany = defineError('too_many', 'rate-limited', () => 'too many')
    app.get('/cannot', { config: { scope: null, errors: [Cannot] } }, async () => { throw Cannot() })
    app.get('/missing', { config: { scope: null, errors: [NotFound] } }, async () => { throw NotFound('thing', 'a') })
    app.get('/wrong', { ...open, schema: { querystring: Type.Object({ n: Type.Integer() }) } }, async () => 'ok')
    app.get('/slow-down', { config: { scope: null, errors: [TooMany] } }, async () => { throw TooMany() })
    app.get('/busy', { config: { scope: null, errors: [Busy] } }, async () => { throw Busy() })
  })
  for (const [url, status] of [['/cannot', 501], ['/missing', 404], ['/wrong?n=x', 400]] as const) t.match(await send({ url }), { statusCode: status, headers: { 'x-should-retry': 'false' } }, url)
  t.same(logged, [])
  for (const [url, status] of [['/slow-down', 429], ['/busy', 503]] as const) {
    const { statusCode, headers } = await send({ url })
    t.same([statusCode, headers['x-should-retry']], [status, undefined], url)
  }
})

t.test('requests have ids: the caller\'s when it is sane, else a new one', async (t) => {
  const { send } = await startTestHttp(t, (app) => { app.get('/id', { config: { scope: null } }, async (request) => request.id) })
  const given = await send({ url: '/id', headers: { 'x-request-id': 'abc.DEF-1' } })
  t.equal(given.body, 'abc.DEF-1')
  t.equal(given.headers['x-request-id'], 'abc.DEF-1')
  const made = await Promise.all([send({ url: '/id' }), send({ url: '/id', headers: { 'x-request-id': 'a b\'"<' } }), send({ url: '/id', headers: { 'x-request-id': 'x'.repeat(129) } })])
  t.equal(new Set(made.map((response) => response.body)).size, 3)
  for (const response of made) t.match(response.headers['x-request-id'], /^[0-9a-f]{12}-[0-9a-z]+$/)
})

t.test('unknown paths get 404, known paths with another method 405', async (t) => {
  const { app, send } = await startTestHttp(t, (app) => {
    app.get('/things/:id', { config: { scope: 'instance:read' } }, async () => ({}))
    app.delete('/things/:id', { config: { scope: 'instance:delete' } }, async () => ({}))
    app.post('/things/special', { config: { scope: 'instance:delete' } }, async () => ({}))
  })
  const missing = await app.inject({ url: '/none?x=1' })
  t.equal(missing.statusCode, 404)
  t.same(missing.json(), { code: 'not_found', message: 'there is no GET /none' })
  t.equal((await send({ url: '/things/a/b' })).statusCode, 404)
  const wrong = await send({ method: 'PUT', url: '/things/a%2Fb' })
  t.equal(wrong.statusCode, 405)
  t.equal(wrong.headers['allow'], 'DELETE, GET, HEAD')
  t.equal(wrong.headers['x-should-retry'], 'false')
  t.match(wrong.json(), { code: 'method_not_allowed' })
  t.equal((await send({ method: 'PUT', url: '/things/special' })).headers['allow'], 'DELETE, GET, HEAD, POST')
})

t.test('health, the OpenAPI document and its page need no key', async (t) => {
  const { app } = await startTestHttp(t, (app) => {
    const Thing = Type.Object({ id: Type.String() }, { $id: 'Thing', additionalProperties: false })
    app.get('/things/:id', {
      config: { scope: 'instance:read' },
      schema: { params: Type.Object({ id: Type.String() }), response: { 200: Thing } }
    }, async () => ({ id: 'a', secret: 'hunter2' }))
    app.get('/things', { config: { scope: 'instance:read' }, schema: { response: { 200: Type.Array(Thing) } } }, async () => [{ id: 'b', secret: 'hunter2' }])
  })
  t.same((await app.inject({ url: '/health' })).json(), { status: 'ok' })
  t.match(await app.inject({ url: '/docs' }), { statusCode: 200, headers: { 'content-type': /html/ } })
  t.match(await app.inject({ url: '/docs/static/swagger-ui.css' }), { statusCode: 200 })
  const response = await app.inject({ url: '/openapi.json' })
  t.match(response.headers['content-type'], /^application\/json/)
  const document = response.json()
  t.match(document, {
    openapi: '3.1.0',
    info: { title: 'Berth', version: API_VERSION },
    security: [{ bearer: [] }],
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: { Thing: { type: 'object', required: ['id'] }, Error: { type: 'object' } }
    }
  })
  const operation = document.paths['/things/{id}'].get
  t.same(operation.responses['200'].content['application/json'].schema, { $ref: '#/components/schemas/Thing' })
  t.same(operation.responses['404'].content['application/json'].schema, { $ref: '#/components/schemas/Error' })
  t.match(operation.description, 'Needs the scope `instance:read`.')
  t.same(document.paths['/things'].get.responses['200'].content['application/json'].schema.items, { $ref: '#/components/schemas/Thing' })
  t.same(document.paths['/health'].get.security, [])
})

t.test('answers hold only what their schema names', async (t) => {
  const { send } = await startTestHttp(t, (app) => {
    const Thing = Type.Object({ id: Type.String() }, { $id: 'Thing', additionalProperties: false })
    app.get('/thing', { config: { scope: null }, schema: { response: { 200: Thing } } }, async () => ({ id: 'a', secret: 'hunter2' }))
  })
  t.equal((await send({ url: '/thing' })).body, '{"id":"a"}')
})

t.test('two schemas under one name are refused', async (t) => {
  const { app } = await startTestHttp(t, (app) => {
    const named = (type: 'a' | 'b') => Type.Object({ [type]: Type.String() }, { $id: 'Thing' })
    app.get('/a', { config: { scope: null }, schema: { response: { 200: named('a') } } }, async () => ({}))
    app.get('/b', { config: { scope: null }, schema: { response: { 200: named('b') } } }, async () => ({}))
  })
  await t.rejects(async () => { await app.ready() }, /route \/b: the schema name Thing is already used/)
})

t.test('a schema that one plugin has named can be used by those that are mounted later', async (t) => {
  const Thing = Type.Object({ id: Type.String() }, { $id: 'Thing', additionalProperties: false })
  const thing = { id: 'a', secret: 'hunter2' }
  const { app, send } = await startTestHttp(t, (app) => {
    void app.register(async (one) => { one.get('/one', { config: { scope: null }, schema: { response: { 200: Thing } } }, async () => thing) })
    void app.register(async (two) => { two.get('/two', { config: { scope: null }, schema: { response: { 200: namedSchema('Thing') } } }, async () => thing) })
  })
  for (const url of ['/one', '/two']) t.equal((await send({ url })).body, '{"id":"a"}', url)
  const { paths } = (await app.inject({ url: '/openapi.json' })).json()
  for (const url of ['/one', '/two']) t.same(paths[url].get.responses['200'].content['application/json'].schema, { $ref: '#/components/schemas/Thing' })
})

t.test('a WebSocket is opened only with a key, and its path refuses plain requests', async (t) => {
  const { key, listen, send } = await startTestHttp(t, (app) => {
    app.get('/echo', { websocket: true, config: { scope: 'instance:write' } }, (socket) => {
      socket.on('message', (data) => socket.send(String(data)))
    })
  })
  const origin = (await listen()).replace('http', 'ws')
  const open = (headers: Record<string, string>): WebSocket => new WebSocket(`${origin}/echo`, { headers })
  const refused = connect(Number(new URL(origin).port), '127.0.0.1')
  refused.setEncoding('utf8').write('GET /echo HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n')
  let answer = ''
  // ends because the server closes the connection
  for await (const chunk of refused) answer += String(chunk)
  t.match(answer, /^HTTP\/1\.1 401 .*\{"code":"Unauthorized","message":"authorization header required"\}$/s)
  const socket = open({ authorization: `Bearer ${key}` })
  await once(socket, 'open')
  socket.send('hello')
  t.equal(String((await once(socket, 'message'))[0]), 'hello')
  socket.send(Buffer.alloc(2 ** 20 + 1))
  t.equal((await once(socket, 'close'))[0], 1009, 'a message over the limit ends the connection')
  const plain = await send({ url: '/echo' })
  t.equal(plain.statusCode, 400)
  t.match(plain.json(), { code: 'upgrade_required' })
})

t.test('an upgrade on a path that is no WebSocket is refused in the words of the API', async (t) => {
  const { listen } = await startTestHttp(t, (app) => {
    app.delete('/thing', { config: { scope: null } }, () => 'gone')
  })
  const port = Number(new URL(await listen()).port)
  const socket = connect(port, '127.0.0.1')
  socket.setEncoding('utf8').write('DELETE /thing HTTP/1.1\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nhost: x\r\nconnection: upgrade\r\n\r\n')
  let answer = ''
  for await (const chunk of socket) answer += String(chunk)
  t.match(answer, /^HTTP\/1\.1 400 .*\{"code":"invalid_request","message":"upgrade: this path is no WebSocket/s)
})

t.test('a client that offers HTTP/2 by an upgrade is served as if it had not, with its body and on the same connection', async (t) => {
  const { listen } = await startTestHttp(t, (app) => {
    app.get('/thing', { config: { scope: null } }, () => 'here')
    app.post('/thing', { config: { scope: null } }, ({ body }) => ({ got: body }))
    app.get('/echo', { websocket: true, config: { scope: null } }, () => {})
  })
  const socket = connect(Number(new URL(await listen()).port), '127.0.0.1')
  const offer = 'host: x\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA'
  let answers = ''
  socket.setEncoding('utf8').on('data', (text: string) => { answers += text })
  const requests = [
    `GET /thing HTTP/1.1\r\n${offer}\r\n\r\n`,
    `POST /thing HTTP/1.1\r\n${offer}\r\ncontent-type: application/json\r\ncontent-length: 7\r\n\r\n{"a":1}`,
    `GET /echo HTTP/1.1\r\n${offer}\r\n\r\n`,
    'GET /thing HTTP/1.1\r\nhost: x\r\n\r\n'
  ]
  // One after the other, as such clients do: they do not know yet what the next one will be spoken in.
  for (const [index, request] of requests.entries()) {
    socket.write(request)
    await eventually('an answer', () => answers.split('HTTP/1.1 ').length === index + 2, { limitMs: 20_000, explain: () => answers })
  }
  socket.destroy()
  t.same([...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status), ['200', '200', '400', '200'])
  t.match(answers, '{"got":{"a":1}}')
  t.match(answers, 'upgrade_required')
})

t.test('a stop lets running requests end and tells endless ones to', { timeout: 20_000 }, async (t) => {
  let release = (): void => undefined
  let arrive = (): void => undefined
  const arrived = new Promise<void>((resolve) => { arrive = resolve })
  const { app, listen } = await startTestHttp(t, (app) => {
    app.get('/slow', { config: { scope: null } }, async () => { await new Promise<void>((resolve) => { release = resolve; arrive() }); return 'done' })
    app.get('/endless', { config: { scope: null } }, (_request, reply) => {
      reply.raw.write('data: 1\n\n')
      app.drainSignal.addEventListener('abort', () => reply.raw.end())
      reply.hijack()
    })
  }, { drainTimeout: '10s' })
  const origin = await listen()
  const endless = await fetch(`${origin}/endless`)
  const slow = fetch(`${origin}/slow`)
  await arrived
  const closing = app.close()
  t.equal(await endless.text(), 'data: 1\n\n')
  release()
  t.equal(await (await slow).text(), 'done')
  await closing
  await t.rejects(fetch(`${origin}/health`))
})

t.test('a stop does not wait forever', { timeout: 20_000 }, async (t) => {
  const { app, listen } = await startTestHttp(t, (app) => {
    app.get('/stuck', { config: { scope: null } }, async () => { await new Promise(() => undefined) })
  }, { drainTimeout: '200ms' })
  const origin = await listen()
  const stuck = t.rejects(fetch(`${origin}/stuck`))
  const halfSent = connect(Number(new URL(origin).port), '127.0.0.1')
  await once(halfSent, 'connect')
  halfSent.on('error', () => undefined)
  halfSent.write('GET /health HTTP/1.1\r\n')
  await delay(50)
  const before = Date.now()
  await app.close()
  t.ok(Date.now() - before < 5000)
  await stuck
})

t.test('a stop does not wait for a connection that has never asked for anything', { timeout: 100_000 }, async (t) => {
  const { app, listen } = await startTestHttp(t, () => undefined, { drainTimeout: '90s' })
  const origin = await listen()
  const silent = connect(Number(new URL(origin).port), '127.0.0.1')
  await once(silent, 'connect')
  t.equal((await fetch(`${origin}/health`)).status, 200, 'the server knows of it by now')
  const closed = once(silent, 'close')
  silent.resume()
  await app.close()
  await closed
})

t.test('what is no HTTP request gets an answer of the same form', async (t) => {
  const { listen } = await startTestHttp(t, () => undefined)
  const port = Number(new URL(await listen()).port)
  for (const [text, answer] of [
    ['NONSENSE\r\n\r\n', /^HTTP\/1\.1 400 .*\{"code":"invalid_request","message":"this is not a valid HTTP request"\}$/s],
    [`GET /health HTTP/1.1\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`, /^HTTP\/1\.1 431 .*"headers_too_large"/s]
  ] as const) {
    const socket = connect(port, '127.0.0.1')
    socket.setEncoding('utf8').end(text)
    let received = ''
    for await (const chunk of socket) received += String(chunk)
    t.match(received, answer)
  }
})

t.test('metrics count requests by route pattern, on their own listener', async (t) => {
  const { send, metrics } = await startTestHttp(t, (app) => {
    app.get('/things/:id', { config: { scope: 'instance:read' } }, async () => ({}))
  })
  await send({ url: '/things/a' })
  await send({ url: '/things/b' })
  await send({ url: '/none' })
  const listener = await startMetricsListener({ listen: '127.0.0.1:0' }, metrics, createLog({ level: 'silent' }))
  t.teardown(() => listener.close())
  const text = await (await fetch(`http://127.0.0.1:${listener.port}/metrics`)).text()
  t.match(text, 'berth_http_requests_total{method="GET",route="/things/:id",status="200"} 2')
  t.match(text, 'berth_http_requests_total{method="GET",route="unknown",status="404"} 1')
  t.match(text, 'berth_http_request_duration_seconds_count{method="GET",route="/things/:id"} 2')
  t.match(text, 'process_cpu_user_seconds_total')
  t.equal((await fetch(`http://127.0.0.1:${listener.port}/`)).status, 404)
})

t.test('requests are logged at debug only', async (t) => {
  const quiet = await startTestHttp(t, () => undefined)
  await quiet.send({ url: '/health' })
  t.same(quiet.logged, [])
  const loud = await startTestHttp(t, () => undefined, { logLevel: 'debug' })
  await loud.send({ url: '/health' })
  const line = loud.logged.find((entry) => entry['msg'] === 'request')
  t.match(line, { method: 'GET', path: '/health', status: 200 })
  t.notMatch(JSON.stringify(loud.logged), loud.key)
})
