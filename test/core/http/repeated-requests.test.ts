// What becomes of a request that its client gives up and sends again, over real connections, as the official SDK does.
import Hypeman from '@onkernel/hypeman'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { Type } from 'typebox'
import { defineError } from '../../../core/errors/define.ts'
import { deferred, type Deferred } from '../../../core/jobs/deferred.ts'
import { until } from '../../helpers/eventually.ts'
import { startTestHttp, type TestHttp } from '../../helpers/http.ts'

const Busy = defineError('busy', 'conflict', () => 'it is busy', { retryAfterSeconds: 1 })
const Broken = defineError('broken', 'unavailable', () => 'it is broken')
const Missing = defineError('not_supported', 'unsupported', () => 'it cannot do that')
const ERRORS: Readonly<Record<string, () => Error>> = { busy: () => Busy(), broken: () => Broken(), missing: () => Missing(), bug: () => new Error('bug') }

interface Made extends TestHttp {
  readonly origin: string
  /** what has begun, in this order, by the number that is in the answer */
  readonly calls: string[]
  /** how many requests have come, whether they begin or join */
  readonly arrived: () => number
  /** how many answers there are, sent or not */
  readonly answered: () => number
  /** how many requests were given up */
  readonly left: () => number
  /** how many bytes of uploads have come */
  readonly uploaded: () => number
  /** Lets the work of the call with this number end, once it has come so far. */
  finish (call: number): void
}

/** Each request to it works until the test lets it end. */
async function start (t: Test): Promise<Made> {
  const calls: string[] = []
  const ends: Deferred<void>[] = []
  const endOf = (call: number): Deferred<void> => (ends[call] ??= deferred())
  const counts = { arrived: 0, answered: 0, left: 0, uploaded: 0 }
  const Body = Type.Object({ name: Type.String(), fail: Type.Optional(Type.String()) }, { additionalProperties: false })
  const http = await startTestHttp(t, (app: FastifyInstance) => {
    app.addHook('preValidation', (_request, { raw: answer }, done) => {
      counts.arrived++
      answer.once('close', () => { if (!answer.writableFinished) counts.left++ })
      done()
    })
    app.addHook('onSend', (_request, _reply, payload, done) => { counts.answered++; done(null, payload) })
    const work = async (what: string): Promise<number> => {
      const call = calls.push(what)
      await endOf(call).promise
      return call
    }
    app.post<{ Body: { name: string, fail?: string } }>('/things', { config: { scope: 'instance:write', idempotent: true, errors: [Busy, Broken, Missing] }, schema: { body: Body, querystring: Type.Object({ dry: Type.Optional(Type.String()) }) } }, async (request, reply) => {
      const call = await work(`create ${request.body.name}`)
      const error = ERRORS[request.body.fail ?? '']
      if (error !== undefined) throw error()
      return reply.code(201).header('location', `/things/${call}`).send({ call })
    })
    app.delete<{ Params: { id: string } }>('/things/:id', { config: { scope: 'instance:write' } }, async (request, reply) => {
      await work(`delete ${request.params.id}`)
      return reply.code(204).send(null)
    })
    void app.register(async (uploads) => {
      uploads.removeAllContentTypeParsers()
      uploads.addContentTypeParser('application/gzip', (_request, _payload, done) => { done(null) })
      uploads.post('/uploads', { config: { scope: 'instance:write', accepts: ['application/gzip'] } }, async (request, reply) => {
        const call = calls.push('upload')
        let bytes = 0
        for await (const chunk of request.raw as AsyncIterable<Buffer>) {
          bytes += chunk.length
          counts.uploaded += chunk.length
        }
        await endOf(call).promise
        return reply.code(201).send({ call, bytes })
      })
    })
  })
  const origin = await http.listen()
  const finish = (call: number): void => { endOf(call).resolve() }
  t.teardown(() => { for (let call = 1; call <= calls.length; call++) finish(call) })
  return { ...http, origin, calls, arrived: () => counts.arrived, answered: () => counts.answered, left: () => counts.left, uploaded: () => counts.uploaded, finish }
}

interface Sent {
  readonly answer: Promise<Response>
  /** Resolves once it has come. */
  there (): Promise<void>
  giveUp (): Promise<void>
}

interface Wanted { readonly method?: string, readonly path?: string, readonly body?: object, readonly key?: string, readonly headers?: Record<string, string> }

/** @param attempt as the SDK counts them; undefined: by another client */
function send ({ origin, key: own, arrived, left }: Made, attempt: number | undefined, { method = 'POST', path = '/things', body = { name: 'a' }, key = own, headers = {} }: Wanted = {}): Sent {
  const controller = new AbortController()
  const before = arrived()
  const answer = fetch(`${origin}${path}`, {
    method,
    signal: controller.signal,
    headers: { authorization: `Bearer ${key}`, ...attempt === undefined ? {} : { 'x-stainless-retry-count': String(attempt) }, ...method === 'DELETE' ? {} : { 'content-type': 'application/json' }, ...headers },
    ...method === 'DELETE' ? {} : { body: JSON.stringify(body) }
  })
  answer.catch(() => {})
  return {
    answer,
    there: async () => { await until(() => arrived() > before) },
    async giveUp () {
      const leftBefore = left()
      controller.abort()
      await until(() => left() > leftBefore)
    }
  }
}

/** Sends a request and gives it up once it has begun; returns the number of its call. */
async function abandoned (made: Made, wanted: Wanted = {}): Promise<number> {
  const before = made.calls.length
  const { giveUp } = send(made, 0, wanted)
  await until(() => made.calls.length > before)
  await giveUp()
  return before + 1
}

/** The same for a request that is done before anybody repeats it. */
async function done (made: Made, wanted: Wanted = {}): Promise<number> {
  const before = made.answered()
  const call = await abandoned(made, wanted)
  made.finish(call)
  await until(() => made.answered() > before)
  return call
}

/** What is told to have come has gone on by then. */
async function moment (): Promise<void> {
  await new Promise((resolve) => { setTimeout(resolve, 50) })
}

t.test('a request that its client repeats after it gave up is given the answer of the one that it repeats', async (t) => {
  const made = await start(t)
  const call = await abandoned(made)
  const repeat = send(made, 1)
  await repeat.there()
  await moment()
  t.same(made.calls, ['create a'], 'it is not done twice')
  made.finish(call)
  const answer = await repeat.answer
  t.equal(answer.status, 201)
  t.same(await answer.json(), { call })
  t.equal(answer.headers.get('location'), '/things/1')
  t.match(answer.headers.get('etag'), /^W\//)
  t.match(answer.headers.get('content-type'), /^application\/json/)
  const removed = await abandoned(made, { method: 'DELETE', path: '/things/1' })
  const again = send(made, 1, { method: 'DELETE', path: '/things/1' })
  await again.there()
  made.finish(removed)
  t.equal((await again.answer).status, 204)
  t.same(made.calls, ['create a', 'delete 1'])
})

t.test('an answer that nobody was there for is kept for the repeat, and is given once', async (t) => {
  const made = await start(t)
  await done(made)
  t.same(await (await send(made, 1).answer).json(), { call: 1 })
  const next = send(made, 2)
  await until(() => made.calls.length === 2)
  made.finish(2)
  t.same(await (await next.answer).json(), { call: 2 }, 'whoever repeats after an answer wants it done again')
})

t.test('an answer that was kept is not given to the repeat of a request that began after it', async (t) => {
  const made = await start(t)
  await done(made)
  for (const attempt of [0, 1]) {
    const sent = send(made, attempt, { body: { name: 'a' } })
    await until(() => made.calls.length === 2 + attempt)
    made.finish(2 + attempt)
    t.same(await (await sent.answer).json(), { call: 2 + attempt })
  }
})

t.test('a repeat that is given up leaves the answer to the next one', async (t) => {
  const made = await start(t)
  const call = await abandoned(made)
  for (const attempt of [1, 2]) {
    const repeat = send(made, attempt)
    await repeat.there()
    await moment()
    await repeat.giveUp()
  }
  const last = send(made, 3)
  await last.there()
  made.finish(call)
  t.same(await (await last.answer).json(), { call })
  t.same(made.calls, ['create a'])
})

t.test('nothing else joins it', async (t) => {
  const made = await start(t)
  const { key: stranger } = await made.keys.create({ name: 'stranger', scopes: ['*'] })
  const held = send(made, 0, { body: { name: 'held' } })
  await until(() => made.calls.length === 1)
  const call = await abandoned(made)
  const others: Record<string, [attempt: number | undefined, wanted: Wanted]> = {
    'a first attempt': [0, {}],
    'a client that does not count': [undefined, {}],
    'no count': [1, { headers: { 'x-stainless-retry-count': 'x' } }],
    'one with an idempotency key': [1, { headers: { 'idempotency-key': 'k' } }],
    'another caller': [1, { key: stranger }],
    'another body': [1, { body: { name: 'b' } }],
    'another query': [1, { path: '/things?dry=true' }],
    'another path': [1, { method: 'DELETE', path: '/things/1' }],
    'another version': [1, { headers: { 'if-match': '*' } }],
    'a repeat while the first client is still there': [1, { body: { name: 'held' } }]
  }
  for (const [name, [attempt, wanted]] of Object.entries(others)) {
    const before = made.calls.length
    const other = send(made, attempt, wanted)
    await until(() => made.calls.length > before)
    made.finish(made.calls.length)
    t.ok((await other.answer).ok, name)
  }
  made.finish(call)
  t.same(await (await send(made, 1).answer).json(), { call }, 'its own repeat still does')
  made.finish(1)
  t.same(await (await held.answer).json(), { call: 1 })
})

t.test('a request with an idempotency key is none that a repeat joins', async (t) => {
  const made = await start(t)
  await abandoned(made, { headers: { 'idempotency-key': 'k' } })
  const repeat = send(made, 1)
  await until(() => made.calls.length === 2)
  made.finish(2)
  t.same(await (await repeat.answer).json(), { call: 2 })
  made.finish(1)
})

t.test('of equal requests that were all given up each repeat has an answer of its own', async (t) => {
  const made = await start(t)
  const both = [await abandoned(made), await abandoned(made)]
  const repeats = [send(made, 1), send(made, 1)]
  for (const call of both) made.finish(call)
  const answers = await Promise.all(repeats.map(async ({ answer }) => (await (await answer).json() as { call: number }).call))
  t.same(answers.sort(), both)
  t.equal(made.calls.length, 2)
})

t.test('an error is an answer, unless it is worth another try', async (t) => {
  for (const [fail, status, isKept] of [['busy', 409, true], ['missing', 501, true], ['broken', 503, false], ['bug', 500, false]] as const) {
    const made = await start(t)
    const body = { name: 'a', fail }
    await done(made, { body })
    const repeat = send(made, 1, { body })
    if (!isKept) await until(() => made.calls.length === 2)
    made.finish(2)
    const answer = await repeat.answer
    t.equal(answer.status, status, fail)
    t.equal(made.calls.length, isKept ? 1 : 2, fail)
    t.equal(answer.headers.get('retry-after'), { busy: '1', missing: null, broken: null, bug: null }[fail])
    t.equal(answer.headers.get('x-should-retry'), fail === 'missing' ? 'false' : null)
  }
})

t.test('a repeat that waits is given an error as well', async (t) => {
  const made = await start(t)
  const body = { name: 'a', fail: 'bug' }
  const call = await abandoned(made, { body })
  const repeat = send(made, 1, { body })
  await repeat.there()
  await moment()
  made.finish(call)
  t.equal((await repeat.answer).status, 500)
  t.equal(made.calls.length, 1)
})

t.test('a key that was revoked meanwhile is given no answer', async (t) => {
  const made = await start(t)
  const { record: { id }, key } = await made.keys.create({ name: 'short', scopes: ['*'] })
  await done(made, { key })
  await made.keys.revoke(id)
  t.equal((await send(made, 1, { key }).answer).status, 401)
})

t.test('an upload that had come whole is joined by its query, and one that had not is none', async (t) => {
  const made = await start(t)
  const upload = (attempt: number, path: string, body: NonNullable<RequestInit['body']>, signal?: AbortSignal): Promise<Response> => fetch(`${made.origin}${path}`, {
    method: 'POST', body, duplex: 'half', headers: { authorization: `Bearer ${made.key}`, 'x-stainless-retry-count': String(attempt), 'content-type': 'application/gzip' }, ...signal === undefined ? {} : { signal }
  } as RequestInit)
  const large = Buffer.alloc(8 * 2 ** 20)
  const whole = new AbortController()
  const first = upload(0, '/uploads?name=a', large, whole.signal).catch(() => {})
  await until(() => made.uploaded() === large.length)
  await moment()
  whole.abort()
  await first
  await until(() => made.left() === 1)
  const repeat = upload(1, '/uploads?name=a', large)
  made.finish(1)
  t.same(await (await repeat).json(), { call: 1, bytes: large.length })
  const cut = new AbortController()
  const endless = new ReadableStream({ start (controller) { controller.enqueue(new Uint8Array(1000)) } })
  const second = upload(0, '/uploads?name=b', endless, cut.signal).catch(() => {})
  await until(() => made.calls.length === 2)
  cut.abort()
  await second
  await until(() => made.left() === 2)
  await moment()
  const again = upload(1, '/uploads?name=b', large)
  made.finish(3)
  t.same(await (await again).json(), { call: 3, bytes: large.length }, 'what its own client cut off is no answer for the next attempt')
})

t.test('a server that stops keeps no repeat waiting', async (t) => {
  const made = await start(t)
  const call = await abandoned(made)
  const repeat = send(made, 1)
  await repeat.there()
  await moment()
  const closed = made.app.close()
  const answer = await repeat.answer
  t.equal(answer.status, 503)
  t.match(await answer.json(), { code: 'unavailable' })
  t.match(answer.headers.get('retry-after'), /^\d+$/)
  made.finish(call)
  await closed
})

t.test('the official SDK is told what became of a request that takes longer than it waits', async (t) => {
  const made = await start(t)
  const sdk = new Hypeman({ baseURL: made.origin, apiKey: made.key, timeout: 800 })
  const answer = sdk.post<{ call: number }>('/things', { body: { name: 'slow' } })
  await until(() => made.arrived() === 2)
  made.finish(1)
  t.same(await answer, { call: 1 })
  t.same(made.calls, ['create slow'], 'it was done once')
})
