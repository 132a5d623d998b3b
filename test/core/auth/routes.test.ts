// Keys over the API: what a key may give, see and end.
import { once } from 'node:events'
import { request as httpRequest, type ClientRequest } from 'node:http'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Type } from 'typebox'
import { WebSocket } from 'ws'
import { runCommandLine } from '../../../core/cli/run.ts'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import { ADMIN_KEY, bareApp } from '../bare-app.ts'
import { eventually } from '../../helpers/eventually.ts'
import { startTestHttp } from '../../helpers/http.ts'

interface Answer { readonly status: number, readonly body: Record<string, unknown>, readonly headers: Record<string, unknown> }
/** A plugin that has the scopes of the tests. */
const scopes = definePlugin({
  manifest: { id: 'scopes', provides: [], requires: [], scopes: ['image:read', 'image:write', 'instance:read'], config: Type.Object({}, { additionalProperties: false }) }
})

type Call = (method: 'GET' | 'POST' | 'DELETE', url: string, body?: Record<string, unknown>, key?: string) => Promise<Answer>

async function start (t: Test): Promise<{ readonly call: Call, readonly dataDir: string, readonly lines: readonly unknown[], make (fields: Record<string, unknown>, key?: string): Promise<{ id: string, key: string }> }> {
  const { app, dataDir, lines } = await bareApp(t, { log: { level: 'trace' } }, { plugins: [scopes] })
  await app.start({ listen: false })
  const call: Call = async (method, url, body, key = ADMIN_KEY) => {
    const response = await app.http.inject({ method, url, headers: { authorization: `Bearer ${key}` }, ...body === undefined ? {} : { payload: body } })
    return { status: response.statusCode, body: response.body === '' ? {} : response.json(), headers: response.headers }
  }
  return {
    call,
    dataDir,
    lines,
    async make (fields, key) {
      const { status, body } = await call('POST', '/keys', { name: 'made', scopes: ['key:read'], ...fields }, key)
      if (status !== 201) throw new Error(JSON.stringify(body))
      return { id: String(body['id']), key: String(body['key']) }
    }
  }
}

t.test('a key is made, shown once, used, listed, found by the beginning of its id, and revoked', async (t) => {
  const { call, lines, dataDir } = await start(t)
  const made = await call('POST', '/keys', { name: 'ci', scopes: ['key:read'], expires_in: '1d12h' })
  t.match(made, { status: 201, headers: { 'cache-control': 'no-store' }, body: { name: 'ci', scopes: ['key:read'], repositories: null, status: 'active', created_by: 'process', revoked_at: null, last_used_at: null } })
  const key = String(made.body['key'])
  const id = String(made.body['id'])
  const { key: _key, ...shown } = made.body
  t.equal(made.headers['location'], `/keys/${id}`)
  const lifetimeMs = Date.parse(String(shown['expires_at'])) - Date.parse(String(shown['created_at']))
  t.ok(Math.abs(lifetimeMs - 36 * 3_600_000) < 1000, `${lifetimeMs} ms`)
  t.same((await call('GET', `/keys/${id.slice(0, 12)}`, undefined, key)).body, shown)
  t.same((await call('GET', '/keys?name=ci', undefined, key)).body, [shown])
  t.same((await call('GET', '/keys?status=revoked')).body, [])
  const out: string[] = []
  await runCommandLine(['token', 'list'], { environment: { BERTH_DATA_DIR: dataDir }, print: (line) => { out.push(line) }, complain: () => undefined })
  t.match(out.join('\n'), new RegExp(`${id} +ci +key:read +active`), 'the command line sees the same keys')
  t.equal((await call('DELETE', `/keys/${id.slice(0, 12)}`)).status, 204)
  t.equal((await call('GET', '/keys', undefined, key)).status, 401)
  t.match((await call('GET', `/keys/${id}`)).body, { status: 'revoked', revoked_at: /Z$/ })
  t.equal((await call('DELETE', `/keys/${id}`)).status, 404)
  t.equal((await call('GET', '/keys/none')).status, 404)
  t.notMatch(JSON.stringify(lines), key.slice(-43))
})

t.test('wrong requests are refused with the field named', async (t) => {
  const { call } = await start(t)
  const scopes = ['image:read']
  const table: ReadonlyArray<readonly [Record<string, unknown>, RegExp]> = [
    [{ scopes }, /name is required/],
    [{ name: '', scopes }, /name must have at least 1/],
    [{ name: 'a' }, /scopes is required/],
    [{ name: 'a', scopes: [] }, /scopes must have at least 1/],
    [{ name: 'a', scopes: ['image:eat'] }, /scopes: image:eat is no scope/],
    [{ name: 'a', scopes, expires_at: '2020-01-01T00:00:00Z' }, /expires_at: must be in the future/],
    [{ name: 'a', scopes, expires_at: 'tomorrow' }, /expires_at must be a date and time/],
    [{ name: 'a', scopes, expires_at: '2030-01-31T12:00:00+01' }, /^expires_at: "2030-01-31T12:00:00\+01" is not a time such as/],
    [{ name: 'a', scopes, expires_at: '9999-12-31T23:59:59-05:00' }, /^expires_at: must be .* before the year 10000/],
    [{ name: 'a', scopes, expires_in: 'soon' }, /expires_in: must be a duration/],
    [{ name: 'a', scopes, expires_in: `${'9'.repeat(40)}h` }, /expires_(in|at): must be/],
    [{ name: 'a', scopes, expires_in: '4000000d' }, /expires_in: must be|expires_at: must be .* before the year 10000/],
    [{ name: 'a', scopes, expires_in: '1d', expires_at: '2999-01-01T00:00:00Z' }, /expires_in: cannot be given together/],
    [{ name: 'a', scopes, repositories: [] }, /repositories: at least one/],
    ...['team/app', 'localhost', 'localhost/', 'localhost/Team', 'localhost/*/app', 'https://a.b/c', 'localhost/a//b', '*'].map((repository) => [{ name: 'a', scopes, repositories: [repository] }, /repositories\[0\]: must be like/] as const)
  ]
  for (const [body, message] of table) t.match(await call('POST', '/keys', body), { status: 400, body: { code: 'invalid_request', message } }, JSON.stringify(body))
  t.same((await call('GET', '/keys?name=a')).body, [])
})

t.test('a key can give no more than it has', async (t) => {
  const { call, make } = await start(t)
  const manager = await make({ scopes: ['key:read', 'key:write', 'image:read'], repositories: ['localhost/team/*'], expires_in: '2d' })
  const { body: own } = await call('GET', `/keys/${manager.id}`)
  const refused: ReadonlyArray<readonly [Record<string, unknown>, RegExp]> = [
    [{ scopes: ['*'] }, /it lacks the scope \*/],
    [{ scopes: ['image:read', 'image:write'] }, /it lacks the scope image:write/],
    [{ scopes: ['image:read'], repositories: ['localhost/other'] }, /it may not write to localhost\/other/],
    [{ scopes: ['image:read'], repositories: ['localhost/*'] }, /it may not write to localhost\/\*/],
    [{ scopes: ['image:read'], expires_in: '3d' }, /it expires at/]
  ]
  for (const [fields, message] of refused) t.match(await call('POST', '/keys', { name: 'more', ...fields }, manager.key), { status: 403, body: { code: 'Forbidden', message } }, JSON.stringify(fields))
  const child = await make({ scopes: ['image:read'], repositories: ['localhost/team/a/*'], expires_in: '1d' }, manager.key)
  t.match((await call('GET', `/keys/${child.id}`)).body, { created_by: manager.id, repositories: ['localhost/team/a/*'] })
  const heir = await make({ scopes: ['image:read'] }, manager.key)
  t.match((await call('GET', `/keys/${heir.id}`)).body, { repositories: ['localhost/team/*'], expires_at: own['expires_at'] }, 'what is left out is as it is for the key that makes it')
  t.equal((await call('POST', '/keys', { name: 'none', scopes: ['image:read'] }, child.key)).status, 403, 'and making keys takes a scope')

  const admin = await make({ scopes: ['*'] })
  t.match(await call('DELETE', `/keys/${admin.id}`, undefined, manager.key), { status: 403, body: { message: /can revoke no key that may do more/ } })
  t.equal((await call('DELETE', `/keys/${child.id}`, undefined, manager.key)).status, 204)
  t.equal((await call('DELETE', `/keys/${manager.id}`, undefined, manager.key)).status, 204, 'a key may end itself')
})

t.test('scopes are needed, and whoami takes any key', async (t) => {
  const { call, make } = await start(t)
  const other = await make({ scopes: ['instance:read'] })
  const reader = await make({ name: 'reader', scopes: ['key:read'], repositories: ['localhost/a'], expires_in: '1h' })
  for (const [method, url, body] of [['GET', '/keys'], ['GET', '/keys/x'], ['POST', '/keys', { name: 'a', scopes: ['key:read'] }], ['DELETE', '/keys/x']] as const) t.equal((await call(method, url, body, other.key)).status, 403, `${method} ${url}`)
  for (const [method, url, body] of [['POST', '/keys', { name: 'a', scopes: ['key:read'] }], ['DELETE', '/keys/x']] as const) t.equal((await call(method, url, body, reader.key)).status, 403, `${method} ${url}`)
  t.same((await call('GET', '/whoami', undefined, other.key)).body, { id: other.id, name: 'made', scopes: ['instance:read'], repositories: null, expires_at: null })
  t.match((await call('GET', '/whoami', undefined, reader.key)).body, { name: 'reader', repositories: ['localhost/a'], expires_at: /Z$/ })
  t.match((await call('GET', '/whoami')).body, { id: 'process', scopes: ['*'] })
  t.equal((await call('GET', '/whoami', undefined, 'wrong')).status, 401)
})

t.test('what is open with a key ends with it, and what is open with another does not', async (t) => {
  const { keys, listen } = await startTestHttp(t, (app) => {
    app.get('/stream', { config: { scope: 'instance:read', produces: 'text/event-stream' } }, async (_request, reply) =>
      await reply.type('text/event-stream').send(Readable.from((async function * () { yield ': open\n'; await new Promise(() => undefined) })(), { objectMode: false })))
    app.get('/socket', { config: { scope: 'instance:read' }, websocket: true }, async (socket) => { socket.send('open') })
  })
  const origin = await listen()
  const stays = await keys.create({ name: 'stays', scopes: ['*'] })
  const ends = await keys.create({ name: 'ends', scopes: ['*'] })
  const open = async (key: string): Promise<{ readonly stream: Promise<string>, readonly socket: WebSocket, readonly abort: AbortController }> => {
    const headers = { authorization: `Bearer ${key}` }
    const abort = new AbortController()
    const response = await fetch(`${origin}/stream`, { headers, signal: abort.signal })
    const socket = new WebSocket(`${origin.replace('http', 'ws')}/socket`, { headers })
    socket.on('error', () => undefined)
    await once(socket, 'message')
    return { stream: response.text().then(() => 'whole', () => 'cut'), socket, abort }
  }
  const [lasting, ending] = [await open(stays.key), await open(ends.key)]
  const closed = once(ending.socket, 'close')
  await keys.revoke(ends.record.id)
  t.equal(await ending.stream, 'cut')
  t.match(await closed, [1006])
  t.equal(lasting.socket.readyState, WebSocket.OPEN)
  t.equal(await Promise.race([lasting.stream, Promise.resolve('still open')]), 'still open')
  lasting.socket.terminate()
  lasting.abort.abort()
})

/** Sends the head of a request; its server has read that once this resolves. `end` is the status of the answer, or `cut off`. */
async function begin (url: string, key: string, type: string): Promise<{ readonly request: ClientRequest, readonly end: Promise<number | string> }> {
  const request = httpRequest(url, { method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': type, 'transfer-encoding': 'chunked', expect: '100-continue' } })
  const end = Promise.race([once(request, 'error').then(() => 'cut off'), once(request, 'response').then(([answer]) => Number(answer.statusCode))])
  request.flushHeaders()
  await once(request, 'continue')
  return { request, end }
}

t.test('a key that has ended does nothing by requests whose bodies are unfinished', async (t) => {
  const { app } = await bareApp(t, {}, { plugins: [scopes] })
  await app.start()
  const call = async (method: string, path: string, key = ADMIN_KEY): Promise<{ status: number, body: Array<Record<string, unknown>> }> => {
    const response = await fetch(app.address() + path, { method, headers: { authorization: `Bearer ${key}` } })
    const text = await response.text()
    return { status: response.status, body: text === '' ? [] : JSON.parse(text) }
  }
  const made = await fetch(`${app.address()}/keys`, { method: 'POST', headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' }, body: JSON.stringify({ name: 'leaked', scopes: ['key:write'] }) })
  const { id, key }: { id?: string, key?: string } = Object.assign({}, await made.json())
  const before = (await call('GET', '/keys')).body
  t.equal((await call('GET', '/whoami', key)).status, 200)
  const { request, end } = await begin(`${app.address()}/keys`, key ?? '', 'application/json')
  request.write('{"name":"heir",')
  t.equal((await call('DELETE', `/keys/${id}`)).status, 204)
  request.end('"scopes":["key:write"]}')
  t.equal(await end, 401)
  const after = (await call('GET', '/keys')).body
  t.match(after, before.map(({ id }) => ({ id })))
  t.equal(after.length, before.length, 'no key was made')
})

t.test('a body that is read as it comes ends with its key', async (t) => {
  const { app, keys, listen } = await startTestHttp(t, () => {})
  const read: string[] = []
  const whole = async (body: Readable): Promise<string> => {
    for await (const chunk of body) read.push(String(chunk))
    return 'whole'
  }
  app.register(async (child) => {
    child.removeAllContentTypeParsers()
    child.addContentTypeParser('*', (_request, _payload, done) => { done(null) })
    child.post('/archive', { config: { scope: 'instance:write' } }, async (request) => await whole(request.raw))
    child.post('/form', { config: { scope: 'instance:write' }, preValidation: async (request) => { await whole(request.raw) } }, async () => 'whole')
  })
  const origin = await listen()
  for (const path of ['/archive', '/form']) {
    const [stays, ends] = [await keys.create({ name: 'stays', scopes: ['*'] }), await keys.create({ name: 'ends', scopes: ['*'] })]
    const [lasting, ending] = [await begin(origin + path, stays.key, 'application/gzip'), await begin(origin + path, ends.key, 'application/gzip')]
    for (const { request } of [lasting, ending]) request.write(`part of ${path}`)
    await eventually('both are read', () => read.filter((part) => part === `part of ${path}`).length === 2)
    await keys.revoke(ends.record.id)
    t.equal(await Promise.race([ending.end, delay(5000, 'goes on')]), 'cut off', path)
    lasting.request.end()
    t.equal(await lasting.end, 200, path)
  }
})

t.test('a key may end itself, with a body or without one', async (t) => {
  const { app, keys, listen } = await startTestHttp(t, () => {})
  app.delete('/me', { config: { scope: 'instance:write' } }, async (request) => {
    await keys.revoke(request.principal?.id ?? '')
    return 'ended'
  })
  const origin = await listen()
  for (const body of [undefined, '{}']) {
    const { key } = await keys.create({ name: 'own', scopes: ['*'] })
    const answer = await fetch(`${origin}/me`, { method: 'DELETE', headers: { authorization: `Bearer ${key}`, ...body === undefined ? {} : { 'content-type': 'application/json' } }, ...body === undefined ? {} : { body } })
    t.match([answer.status, await answer.text()], [200, 'ended'])
  }
})
