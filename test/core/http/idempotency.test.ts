import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { hostname } from 'node:os'
import t from 'tap'
import { Type } from 'typebox'
import { NameConflict } from '../../../core/errors/common.ts'
import { createIdempotencyRepository } from '../../../core/http/idempotency-repository.ts'
import { readIdentity } from '../../../core/process/identity.ts'
import type { Clocks } from '../../../core/steady-clock.ts'
import { eventually } from '../../helpers/eventually.ts'
import { HOST_ID, startTestHttp, type TestHttp } from '../../helpers/http.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'
import { settableClock } from '../../helpers/settable-clock.ts'

const HOUR_MS = 3_600_000

interface Made { readonly http: TestHttp, readonly calls: string[], release: () => void }

async function start (t: Parameters<typeof startTestHttp>[0], databaseUrl?: string, clocks?: Clocks, hostId = HOST_ID): Promise<Made> {
  const calls: string[] = []
  const made: { release: () => void } = { release: () => undefined }
  const Body = Type.Object({ name: Type.String(), fail: Type.Optional(Type.String()), wait: Type.Optional(Type.Boolean()) }, { additionalProperties: false })
  const http = await startTestHttp(t, (app) => {
    app.post<{ Body: { name: string, fail?: string, wait?: boolean } }>('/things', { config: { scope: 'instance:write', idempotent: true, errors: [NameConflict] }, schema: { body: Body } }, async (request, reply) => {
      calls.push(request.body.name)
      if (request.body.wait === true) await new Promise<void>((resolve) => { made.release = resolve })
      if (request.body.fail === 'conflict' && calls.length === 1) throw NameConflict('taken')
      if (request.body.fail === 'bug' && calls.length === 1) throw new Error('bug')
      return reply.code(201).header('location', '/things/1').send({ name: request.body.name, call: calls.length })
    })
    app.post('/plain', { config: { scope: 'instance:write' } }, async () => { calls.push('plain'); return {} })
  }, { ...databaseUrl === undefined ? {} : { databaseUrl }, ...clocks === undefined ? {} : { clocks }, hostId })
  return { http, calls, release: () => made.release() }
}

function post ({ http }: Made, body: object, key?: string, url = '/things'): ReturnType<TestHttp['send']> {
  return http.send({ method: 'POST', url, body, headers: key === undefined ? {} : { 'idempotency-key': key } })
}

eachDatabase(t, 'the same request under the same key happens once and has one answer', async (t, _database, url) => {
  const made = await start(t, url)
  const first = await post(made, { name: 'a' }, 'k')
  const again = await post(made, { name: 'a' }, 'k')
  t.equal(again.statusCode, 201)
  t.equal(again.body, first.body)
  t.match(again.headers, { location: '/things/1', 'content-type': first.headers['content-type'], 'idempotent-replayed': 'true' })
  t.equal(first.headers['idempotent-replayed'], undefined)
  t.same(made.calls, ['a'])
  await post(made, { name: 'a' })
  await post(made, { name: 'a' }, 'other')
  t.equal(made.calls.length, 3, 'no key or another key is another request')
})

eachDatabase(t, 'a key belongs to one request, one caller and one path', async (t, _database, url) => {
  const made = await start(t, url)
  await post(made, { name: 'a' }, 'k')
  const other = await post(made, { name: 'b' }, 'k')
  t.equal(other.statusCode, 409)
  t.equal(other.headers['x-should-retry'], 'false')
  t.match(other.json(), { code: 'idempotency_key_reused' })
  const { key } = await made.http.keys.create({ name: 'other', scopes: ['*'] })
  const stranger = await made.http.app.inject({ method: 'POST', url: '/things', body: { name: 'b' }, headers: { authorization: `Bearer ${key}`, 'idempotency-key': 'k' } })
  t.equal(stranger.statusCode, 201)
  const own = async (key: string): ReturnType<TestHttp['send']> => await made.http.app.inject({ method: 'POST', url: '/things', body: { name: 'b' }, headers: { authorization: `Bearer ${key}`, 'idempotency-key': 'k' } })
  made.http.keys.addProcessKey('the-key-of-one-start')
  t.notOk((await own('the-key-of-one-start')).headers['idempotent-replayed'])
  made.http.keys.addProcessKey('the-key-of-the-next')
  t.notOk((await own('the-key-of-the-next')).headers['idempotent-replayed'], 'of the keys of BERTH_API_KEY each is a caller of its own')
  t.equal((await own('the-key-of-one-start')).headers['idempotent-replayed'], 'true')
  t.equal((await post(made, {}, 'k', '/plain')).statusCode, 200)
  t.equal((await post(made, {}, 'k', '/plain')).headers['idempotent-replayed'], undefined, 'only routes that create remember')
})

eachDatabase(t, 'of the same request many times at once, on two servers, exactly one happens', async (t, _database, url) => {
  const one = await start(t, url)
  const two = await start(t, url)
  // both servers know the first one's key
  const send = (made: Made): ReturnType<TestHttp['send']> => made.http.app.inject({
    method: 'POST', url: '/things', body: { name: 'a', wait: true }, headers: { authorization: `Bearer ${one.http.key}`, 'idempotency-key': 'k' }
  })
  const early: number[] = []
  const all = Array.from({ length: 10 }, (_, index) => send(index % 2 === 0 ? one : two).then((response) => {
    early.push(response.statusCode)
    if (early.length === 9) { one.release(); two.release() }
    return response
  }))
  const answers = await Promise.all(all)
  t.equal(one.calls.length + two.calls.length, 1)
  t.same(answers.map((answer) => answer.statusCode).sort(), [201, ...Array.from({ length: 9 }, () => 409)])
  const early409 = answers.find((answer) => answer.statusCode === 409)
  t.match(early409?.json(), { code: 'idempotency_in_progress' })
  t.match(early409?.headers, { 'retry-after': /^[1-9]\d*$/, 'x-should-retry': undefined }, 'its sender may well try again: the answer is on its way')
  t.equal((await send(two)).headers['idempotent-replayed'], 'true')
})

eachDatabase(t, 'errors are not remembered: they created nothing', async (t, _database, url) => {
  for (const fail of ['conflict', 'bug']) {
    const made = await start(t, url)
    t.equal((await post(made, { name: 'a', fail }, fail)).statusCode, fail === 'bug' ? 500 : 409)
    t.equal((await post(made, { name: 'a', fail }, fail)).statusCode, 201)
    t.equal((await post(made, { name: 'a', fail }, fail)).headers['idempotent-replayed'], 'true')
  }
})

eachDatabase(t, 'a request whose server died may be made again; one whose server lives may not', async (t, _database, url) => {
  const made = await start(t, url)
  const other = spawn('sleep', ['1000'], { stdio: 'ignore' })
  await once(other, 'spawn')
  t.teardown(() => other.kill('SIGKILL'))
  const identity = readIdentity(other.pid ?? 0)
  await post(made, { name: 'a' }, 'k')
  await made.http.database('core_idempotency').update({ status: null, body: null, owner: [HOST_ID, identity?.bootId, identity?.pid, identity?.startTicks].join('|') })
  t.match((await post(made, { name: 'a' }, 'k')).json(), { code: 'idempotency_in_progress' })
  other.kill('SIGKILL')
  await once(other, 'exit')
  t.match((await post(made, { name: 'b' }, 'k')).json(), { code: 'idempotency_key_reused' })
  t.equal((await post(made, { name: 'a' }, 'k')).statusCode, 201)
  t.same(made.calls, ['a', 'a'])
  // An earlier version named this host otherwise.
  for (const host of [HOST_ID, hostname().slice(0, 64)]) {
    await made.http.database('core_idempotency').update({ status: null, owner: [host, 'an earlier boot', identity?.pid, identity?.startTicks].join('|') })
    t.equal((await post(made, { name: 'a' }, 'k')).statusCode, 201, 'of an earlier boot of this host no process lives')
  }
})

eachDatabase(t, 'a request that another host works on is made by no other one for a week, whatever its boot, its process and its clock', async (t, _database, url) => {
  const made = await start(t, url)
  await post(made, { name: 'a' }, 'k')
  await made.http.database('core_idempotency').update({ status: null, owner: `${'b'.repeat(24)}|boot|1|1`, created_at: Date.now() - 6 * 24 * HOUR_MS, expires_at: Date.now() - 5 * 24 * HOUR_MS })
  t.match((await post(made, { name: 'a' }, 'k')).json(), { code: 'idempotency_in_progress' })
  await made.http.database('core_idempotency').update({ created_at: Date.now() - 7 * 24 * HOUR_MS })
  t.equal((await post(made, { name: 'a' }, 'k')).statusCode, 201)
})

eachDatabase(t, 'a host whose clock is wrong forgets and shortens no answer of another one, and forgets its own', async (t, database, url) => {
  const made = await start(t, url)
  await post(made, { name: 'a' }, 'k')
  const [before] = await database('core_idempotency')
  const [own, other] = [HOST_ID, 'b'.repeat(24)].map((hostId) => createIdempotencyRepository(database, hostId))
  await other?.shorten(Date.now() - 24 * HOUR_MS)
  await other?.deleteExpired(Date.now() + 48 * HOUR_MS)
  t.same(await database('core_idempotency'), [before])
  const ahead = await start(t, url, { now: () => Date.now() + 48 * HOUR_MS, elapsed: () => performance.now() }, 'b'.repeat(24))
  const asked = { method: 'POST', url: '/things', body: { name: 'a' }, headers: { authorization: `Bearer ${made.http.key}`, 'idempotency-key': 'k' } } as const
  t.equal((await ahead.http.app.inject(asked)).headers['idempotent-replayed'], 'true')
  await other?.deleteExpired(Date.now() + 8 * 24 * HOUR_MS)
  t.same(await database('core_idempotency'), [], 'after a week it is nobody\'s')
  await post(made, { name: 'a' }, 'k')
  await own?.shorten(Date.now() - 1)
  await own?.deleteExpired(Date.now())
  t.same(await database('core_idempotency'), [])
})

eachDatabase(t, 'an answer that the database did not take is stored as soon as another request with a key finds the database back', async (t, database, url) => {
  const made = await start(t, url)
  const first = post(made, { name: 'a', wait: true }, 'k')
  await eventually('it is worked on', async () => made.calls.length === 1)
  await database.schema.renameTable('core_idempotency', 'away')
  made.release()
  t.equal((await first).statusCode, 201)
  await database.schema.renameTable('away', 'core_idempotency')
  await post(made, { name: 'b' }, 'other')
  t.same((await database('core_idempotency').select('status')).map(({ status }) => status), [201, 201])
})

for (const [what, fields, status, calls] of [['an answer', {}, 201, 1], ['the end of a request that failed', { fail: 'conflict' }, 409, 2]] as const) {
  eachDatabase(t, `${what} that the database does not take is sent all the same, and its key can be used again at once`, async (t, database, url) => {
    const made = await start(t, url)
    const body = { name: 'a', wait: true, ...fields }
    const first = post(made, body, 'k')
    await eventually('it is worked on', async () => made.calls.length === 1)
    await database.schema.renameTable('core_idempotency', 'away')
    made.release()
    t.equal((await first).statusCode, status)
    await database.schema.renameTable('away', 'core_idempotency')
    const second = post(made, body, 'k')
    if (calls === 2) {
      await eventually('it is worked on again', async () => made.calls.length === 2)
      t.match((await post(made, body, 'k')).json(), { code: 'idempotency_in_progress' }, 'and once only')
      made.release()
    }
    t.equal((await second).statusCode, 201)
    t.match(await post(made, body, 'k'), { statusCode: 201, headers: { 'idempotent-replayed': 'true' }, body: (await second).body })
    t.equal(made.calls.length, calls)
  })
}

eachDatabase(t, 'answers are forgotten after a day', async (t, _database, url) => {
  const made = await start(t, url)
  await post(made, { name: 'a' }, 'k')
  const [row] = await made.http.database('core_idempotency').select('created_at', 'expires_at')
  t.equal(row.expires_at - row.created_at, 24 * 3_600_000)
  await made.http.database('core_idempotency').update({ expires_at: Date.now() - 1 })
  t.equal((await post(made, { name: 'b' }, 'k')).statusCode, 201)
})

eachDatabase(t, 'a clock that is set ahead forgets no answer until as long has passed as answers are kept', async (t, _database, url) => {
  const { clocks, set, pass } = settableClock()
  const made = await start(t, url, clocks)
  await post(made, { name: 'a' }, 'k')
  set(24 * 365)
  t.equal((await post(made, { name: 'a' }, 'k')).headers['idempotent-replayed'], 'true')
  pass(23)
  t.equal((await post(made, { name: 'a' }, 'k')).headers['idempotent-replayed'], 'true')
  t.same(made.calls, ['a'])
  pass(1)
  t.equal((await post(made, { name: 'b' }, 'k')).statusCode, 201)
})

eachDatabase(t, 'a clock that is put back forgets no answer, and lets none be kept for longer than a day from then', async (t, _database, url) => {
  const { clocks, set } = settableClock()
  const made = await start(t, url, clocks)
  await post(made, { name: 'a' }, 'k')
  set(-24 * 365)
  t.equal((await post(made, { name: 'a' }, 'k')).headers['idempotent-replayed'], 'true')
  const repository = createIdempotencyRepository(made.http.database, HOST_ID)
  await repository.shorten(clocks.now() + 24 * HOUR_MS)
  await repository.deleteExpired(clocks.now() + 24 * HOUR_MS - 1)
  t.equal((await post(made, { name: 'a' }, 'k')).headers['idempotent-replayed'], 'true')
  await repository.deleteExpired(clocks.now() + 24 * HOUR_MS)
  t.equal((await post(made, { name: 'a' }, 'k')).headers['idempotent-replayed'], undefined)
})

eachDatabase(t, 'a clock that is set ahead does not end what another host works on', async (t, _database, url) => {
  const { clocks, set, pass } = settableClock()
  const made = await start(t, url, clocks)
  await post(made, { name: 'a' }, 'k')
  await made.http.database('core_idempotency').update({ status: null, owner: `${'b'.repeat(24)}|boot|1|1` })
  set(24 * 365)
  t.match((await post(made, { name: 'a' }, 'k')).json(), { code: 'idempotency_in_progress' })
  pass(24)
  t.equal((await post(made, { name: 'a' }, 'k')).statusCode, 201)
})

t.test('the order of fields is of no matter, and neither key nor body is stored', async (t) => {
  const made = await start(t)
  await post(made, { name: 'hunter2', fail: 'no' }, 'my-key')
  t.equal((await post(made, { fail: 'no', name: 'hunter2' }, 'my-key')).headers['idempotent-replayed'], 'true')
  const [row] = await made.http.database('core_idempotency').select('id', 'request_hash')
  t.match(row, { id: /^[0-9a-f]{64}$/, request_hash: /^[0-9a-f]{64}$/ })
  t.notMatch(JSON.stringify(row), 'my-key')
})

t.test('another query is another request, as another body is; the order of its parameters is of no matter', async (t) => {
  const made = await start(t)
  t.equal((await post(made, { name: 'a' }, 'k', '/things?size=1&name=x')).statusCode, 201)
  t.equal((await post(made, { name: 'a' }, 'k', '/things?name=x&size=1')).headers['idempotent-replayed'], 'true')
  for (const url of ['/things?size=2&name=x', '/things?size=1', '/things']) t.match((await post(made, { name: 'a' }, 'k', url)).json(), { code: 'idempotency_key_reused' }, url)
  t.same(made.calls, ['a'])
})

t.test('a key that is none is refused', async (t) => {
  const made = await start(t)
  for (const key of ['', 'a b', 'x'.repeat(256)]) t.match(await post(made, { name: 'a' }, key), { statusCode: 400 }, JSON.stringify(key))
  t.same(made.calls, [])
})
