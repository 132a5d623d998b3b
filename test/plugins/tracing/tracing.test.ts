import { once } from 'node:events'
import { chmod, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { eventually } from '../../helpers/eventually.ts'
import { testFolder } from '../../helpers/folder.ts'
import { startCollector, type Collector, type ReceivedSpan } from '../../helpers/otlp.ts'
import { authorization, bareApp } from '../../core/bare-app.ts'
import { tracedApp } from './app.ts'

async function spanNamed (collector: Collector, name: string): Promise<ReceivedSpan> {
  return await eventually(`the span ${name}`, () => collector.spans().find(span => span.name === name))
}

t.test('a request, its job and its host command are one trace, each step below the one that set it off', async (t) => {
  const collector = await startCollector(t)
  const { send, lines } = await tracedApp(t, { endpoint: collector.endpoint, service: 'berth here' })
  const answer = await send('POST', '/work/hunter2?token=hunter2')
  t.equal(answer.statusCode, 200)
  const root = await spanNamed(collector, 'POST /work/:id')
  t.equal(answer.headers['x-trace-id'], root.trace)
  t.match(root, { parent: '', kind: 'SERVER', failed: false, attributes: { 'http.request.method': 'POST', 'http.route': '/work/:id', 'http.response.status_code': '200', 'berth.request_id': answer.headers['x-request-id'] }, resource: { 'service.name': 'berth here', 'service.version': String, 'service.instance.id': String } })
  let parent = root
  for (const name of ['outer', 'job things', 'command echo']) {
    const span = await spanNamed(collector, name)
    t.equal(span.trace, root.trace, `${name} is of the trace`)
    t.equal(span.parent, parent.id, `${name} is below ${parent.name}`)
    t.ok(span.startMs >= parent.startMs - 1 && span.endMs <= parent.endMs + 1, `${name} lies within ${parent.name}`)
    parent = span
  }
  t.equal(collector.spans().length, 4, 'and no other')
  t.notMatch(JSON.stringify(collector.spans()), 'hunter2', 'neither arguments nor ids nor query strings')
  t.match(lines.find(line => line['msg'] === 'at work'), { trace_id: root.trace })
})

t.test('what goes wrong is told by its code, and the answer names the trace', async (t) => {
  const collector = await startCollector(t)
  const { send, lines } = await tracedApp(t, { endpoint: collector.endpoint })
  const broken = await send('GET', '/broken')
  t.equal(broken.statusCode, 500)
  const root = await spanNamed(collector, 'GET /broken')
  t.equal(broken.headers['x-trace-id'], root.trace)
  t.match(root, { failed: true, attributes: { 'http.response.status_code': '500' } })
  t.match(await spanNamed(collector, 'command sh'), { failed: true, attributes: { 'error.type': String } })
  t.notMatch(JSON.stringify(collector.spans()), 'hunter2')
  t.match(lines.find(line => line['msg'] === 'request failed'), { trace_id: root.trace })
  t.match(await send('GET', '/wrong'), { statusCode: 400, headers: { 'x-trace-id': /^[0-9a-f]{32}$/ } })
  t.match(await spanNamed(collector, 'GET /wrong'), { failed: false })
})

const CALLER = { trace: '0af7651916cd43dd8448eb211c80319c', span: 'b7ad6b7169203331' }
const traceparent = (flags: string): string => `00-${CALLER.trace}-${CALLER.span}-${flags}`

t.test('the traceparent of a caller with a key is gone on with, and of nobody else', async (t) => {
  const collector = await startCollector(t)
  const { app, send } = await tracedApp(t, { endpoint: collector.endpoint })
  t.equal((await send('GET', '/quick', { traceparent: traceparent('01') })).headers['x-trace-id'], CALLER.trace)
  t.match(await spanNamed(collector, 'GET /quick'), { trace: CALLER.trace, parent: CALLER.span })
  t.equal((await send('GET', '/quick', { traceparent: traceparent('00') })).headers['x-trace-id'], undefined, 'one that the caller does not take is not taken here')
  for (const unreadable of ['x', `00-${'0'.repeat(32)}-${CALLER.span}-01`, `00-${CALLER.trace}-${CALLER.span}`, `${traceparent('01')}${'-'.repeat(5000)}`]) {
    t.match((await send('GET', '/quick', { traceparent: unreadable })).headers['x-trace-id'], /^(?!0af76519)[0-9a-f]{32}$/, 'one that cannot be read is passed over')
  }
  const seen = collector.headers.length
  for (const key of ['Bearer wrong', '']) {
    const refused = await app.http.inject({ url: '/quick', headers: { authorization: key, traceparent: traceparent('01') } })
    t.equal(refused.statusCode, 401)
    t.equal(refused.headers['x-trace-id'], undefined)
  }
  t.equal((await app.http.inject({ url: '/health', headers: { traceparent: traceparent('01') } })).headers['x-trace-id'], undefined, 'nor on a route without a key')
  await send('GET', '/wrong')
  await spanNamed(collector, 'GET /wrong')
  t.ok(collector.headers.length > seen)
  t.equal(collector.spans().filter(({ trace }) => trace === CALLER.trace).length, 1)
})

t.test('a read that only looks into memory is a trace of one span, below the caller\'s if it has one', async (t) => {
  const collector = await startCollector(t)
  const { app, send } = await tracedApp(t, { endpoint: collector.endpoint })
  const answer = await send('GET', '/memory/hunter2')
  t.equal(answer.statusCode, 200)
  t.equal(answer.headers['x-trace-id'], undefined)
  const span = await spanNamed(collector, 'GET /memory/:what')
  t.match(span, {
    trace: /^(?!0+$)[0-9a-f]{32}$/, id: /^(?!0+$)[0-9a-f]{16}$/, parent: '', kind: 'SERVER', failed: false,
    attributes: { 'http.request.method': 'GET', 'http.route': '/memory/:what', 'http.response.status_code': '200', 'berth.request_id': answer.headers['x-request-id'] }
  })
  t.ok(span.startMs <= span.endMs && span.endMs <= Date.now() && span.startMs > Date.now() - 60_000)
  await send('GET', '/memory/x', { traceparent: traceparent('01') })
  await eventually('the caller\'s', () => collector.spans().find(({ trace, parent }) => trace === CALLER.trace && parent === CALLER.span))
  await send('GET', '/memory/x', { traceparent: traceparent('00') })
  await app.http.inject({ url: '/memory/x', headers: { traceparent: traceparent('01') } })
  await app.stop()
  t.equal(collector.spans().length, 2, 'not those that the caller does not take, and none without a key')
  t.notMatch(JSON.stringify(collector.spans()), 'hunter2')
})

t.test('an error of such a read, and its line in the log, tell the trace', async (t) => {
  const collector = await startCollector(t)
  const { app, send, lines } = await tracedApp(t, { endpoint: collector.endpoint })
  const broken = await send('GET', '/memory/broken')
  t.equal(broken.statusCode, 500)
  const wrong = await send('GET', '/memory/wrong')
  t.equal(wrong.statusCode, 400)
  await app.stop()
  t.match(collector.spans(), [
    { trace: broken.headers['x-trace-id'], name: 'GET /memory/:what', failed: true, attributes: { 'http.response.status_code': '500' } },
    { trace: wrong.headers['x-trace-id'], name: 'GET /memory/:what', failed: false, attributes: { 'http.response.status_code': '400' } }
  ])
  t.equal(collector.spans().length, 2)
  t.match(lines.find(line => line['msg'] === 'request failed'), { trace_id: broken.headers['x-trace-id'] })
})

t.test('of an attribute that is set again the later value is sent, once', async (t) => {
  const collector = await startCollector(t)
  const { send } = await tracedApp(t, { endpoint: collector.endpoint })
  await send('GET', '/again')
  t.strictSame((await spanNamed(collector, 'set again')).attributes, { kept: true, share: 0.5, 'berth.tries': '2' })
})

t.test('what goes on after the answer adds nothing to its trace', async (t) => {
  const collector = await startCollector(t)
  const { send } = await tracedApp(t, { endpoint: collector.endpoint })
  await send('GET', '/later')
  await spanNamed(collector, 'GET /later')
  await new Promise(resolve => setTimeout(resolve, 100))
  await send('GET', '/quick')
  await spanNamed(collector, 'GET /quick')
  t.same(collector.spans().map(({ name }) => name), ['GET /later', 'GET /quick'])
})

t.test('the span of a request ends with its connection: one whose client hangs up, a stream that its client leaves, a WebSocket', async (t) => {
  const collector = await startCollector(t)
  const { app, lines } = await tracedApp(t, { endpoint: collector.endpoint })
  const url = app.address()
  const leaving = new AbortController()
  const held = fetch(`${url}/held`, { headers: authorization, signal: leaving.signal }).catch(() => 'left')
  const stream = await fetch(`${url}/stream`, { headers: authorization, signal: leaving.signal })
  const socket = new WebSocket(`${url.replace('http', 'ws')}/socket`, { headers: authorization })
  await once(socket, 'message')
  await eventually('the request', () => lines.some(({ msg }) => msg === 'held'))
  t.same(collector.spans(), [], 'none of them has ended')
  leaving.abort()
  socket.close()
  t.equal(await held, 'left')
  t.match((await spanNamed(collector, 'GET /held')).attributes, { 'http.response.status_code': undefined, 'http.route': '/held' }, 'it had no answer')
  t.match(await spanNamed(collector, 'GET /stream'), { trace: stream.headers.get('x-trace-id'), attributes: { 'http.response.status_code': '200' } })
  await spanNamed(collector, 'GET /socket')
})

t.test('so does the span of a request that waits for the answer to the one before it on its connection', async (t) => {
  const collector = await startCollector(t)
  const { app, lines } = await tracedApp(t, { endpoint: collector.endpoint })
  const socket = connect(Number(new URL(app.address()).port), '127.0.0.1')
  const head = ` HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization.authorization}\r\n\r\n`
  socket.write(`GET /held${head}GET /quick${head}`)
  await eventually('the request', () => lines.some(({ msg }) => msg === 'held'))
  socket.destroy()
  for (const name of ['GET /held', 'GET /quick']) t.ok(await spanNamed(collector, name), name)
})

t.test('of a share of 0 nothing is taken, and the answer has no trace', async (t) => {
  const collector = await startCollector(t)
  const { app, send } = await tracedApp(t, { endpoint: collector.endpoint, sample: 0 })
  t.equal((await send('GET', '/quick')).headers['x-trace-id'], undefined)
  await app.stop()
  t.same(collector.spans(), [])
})

t.test('what waits is posted at the end, with the headers of a file that nobody else may read', async (t) => {
  const collector = await startCollector(t)
  const file = join(testFolder(t), 'headers')
  await writeFile(file, '# for the collector\nAuthorization: Bearer for-the-collector\n\nX-Scope: a: b\n', { mode: 0o600 })
  const { app, send } = await tracedApp(t, { endpoint: collector.endpoint, headersFile: file, interval: '1h' })
  await send('GET', '/quick')
  t.same(collector.spans(), [])
  await app.stop()
  t.same(collector.spans().map(({ name }) => name), ['GET /quick'])
  t.match(collector.headers[0], { authorization: 'Bearer for-the-collector', 'x-scope': 'a: b', 'content-type': 'application/x-protobuf' })
  for (const [text, rule] of [['x\n', /line 1 of .* must be "Name: value"/], ['A: b\nHost: c\n', /line 2 of .* sets Host/], [`A: ${'b'.repeat(20_000)}`, /has more than 16384 bytes/]] as const) {
    await writeFile(file, text)
    await refuses(t, file, rule)
  }
  await writeFile(file, 'Authorization: hunter2\n')
  await chmod(file, 0o604)
  await refuses(t, file, /others can read/)
  await refuses(t, `${file}-not`, /cannot be read/)
})

async function refuses (t: Test, headersFile: string, rule: RegExp): Promise<void> {
  const failure: unknown = await tracedApp(t, { endpoint: 'http://127.0.0.1:9/', headersFile }).catch((error: unknown) => error)
  t.match(failure, { message: rule })
  t.match(failure, { message: /plugins\.tracing\.config\.headersFile/ })
  t.notMatch(String(failure), 'hunter2')
}

t.test('without an endpoint the plugin is skipped, and says why', async (t) => {
  const { send } = await tracedApp(t, {})
  t.match((await send('GET', '/plugins')).json(), [{ id: 'tracing', state: 'skipped', reason: /endpoint names no collector/ }, { id: 'worker', state: 'started' }])
  t.equal((await send('GET', '/quick')).headers['x-trace-id'], undefined)
  await t.rejects(bareApp(t, { plugins: { tracing: { config: { endpoint: 'ftp://x' } } } }, { plugins: [(await import('../../../plugins/tracing/index.ts')).plugin] }), { message: /plugins\.tracing\.config\.endpoint.*must be a URL/ })
})
