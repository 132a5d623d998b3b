// The events of a build: replayed, followed, resumed, by many at once and by those who do not read.
import { once } from 'node:events'
import { appendFile, readdir, readFile, readlink, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { decodeStream } from '../../helpers/line-decoder.ts'
import { startBuilds, until, type BuildsApp } from './app.ts'

interface Event { readonly id: string | undefined, readonly type: string, readonly content?: string, readonly status?: string, readonly timestamp: string }

/** The events of an answer, as they come. */
async function * eventsOf (answer: Response): AsyncGenerator<Event, void, void> {
  for await (const { id, data } of decodeStream(answer.body)) yield { id, ...eventIn(data) }
}

function eventIn (data: unknown): Omit<Event, 'id'> {
  const event: Omit<Event, 'id'> = JSON.parse(JSON.stringify(data))
  return event
}

async function open ({ app }: BuildsApp, id: string, query = '', headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> {
  return await fetch(`${app.address()}/builds/${id}/events${query}`, { headers: { authorization: `Bearer ${ADMIN_KEY}`, ...headers }, ...signal === undefined ? {} : { signal } })
}

async function all (answer: Response): Promise<Event[]> {
  const found: Event[] = []
  for await (const event of eventsOf(answer)) found.push(event)
  return found
}

/** What buffers take that are in use. */
function buffersBytes (): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return process.memoryUsage().arrayBuffers
}

const shown = ({ type, content, status }: Event): string => content ?? status ?? type

t.test('events are replayed, and followed to the end of the build', async (t) => {
  const app = await startBuilds(t, { listen: true, config: { concurrency: 1 } })
  const first = await app.build()
  const id = await app.build()
  const queued = await open(app, id)
  t.equal(queued.headers.get('content-type'), 'text/event-stream')
  t.same((await all(queued)).map(shown), ['queued'], 'without follow it ends')
  const followed = all(await open(app, id, '?follow=true'))
  ;(await app.runner.begun(first)).finish()
  const run = await app.runner.begun(id)
  run.progress.log('STEP 1/2: FROM scratch')
  run.progress.log('')
  run.progress.log('ümläut \u0000 "quoted"')
  await run.progress.instance('vm1')
  t.match(await app.get(id), { builder_instance_id: 'vm1' })
  await run.progress.pushing()
  t.match(await app.get(id), { status: 'pushing' })
  run.progress.log('pushed')
  run.finish()
  const events = await followed
  t.same(events.map(shown), ['queued', 'building', 'STEP 1/2: FROM scratch', '', 'ümläut \u0000 "quoted"', 'pushing', 'pushed', 'ready'])
  t.ok(events.every(({ timestamp }) => new Date(timestamp).toISOString() === timestamp))
  t.same((await all(await open(app, id, '?follow=true'))).map(shown), events.map(shown), 'of a build that is over too, and it ends')
  t.same((await all(await open(app, id))).map(shown), events.map(shown))
  t.match(await app.call('GET', '/builds/nobody/events'), { status: 404, body: { code: 'not_found' } })
  t.equal((await app.call('GET', `/builds/${id}/events?follow=maybe`)).status, 400)
})

t.test('twenty clients follow one build from its start to its end, and all see the same', async (t) => {
  const app = await startBuilds(t, { listen: true })
  const id = await app.build()
  const run = await app.runner.begun(id)
  const answers = await Promise.all(Array.from({ length: 20 }, async () => await open(app, id, '?follow=true')))
  const clients = answers.map(async (answer) => await all(answer))
  const lines = Array.from({ length: 2000 }, (_, index) => `line ${index} ${'x'.repeat(index % 300)}`)
  for (const [index, line] of lines.entries()) {
    run.progress.log(line)
    if (index % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  await run.progress.pushing()
  run.finish()
  for (const client of clients) t.same((await client).map(shown), ['queued', 'building', ...lines, 'pushing', 'ready'])
})

t.test('a client that was cut off goes on after the last event that it has seen', async (t) => {
  const app = await startBuilds(t, { listen: true })
  const id = await app.build()
  const run = await app.runner.begun(id)
  run.progress.log('one')
  const gone = new AbortController()
  const answer = await open(app, id, '?follow=true', {}, gone.signal)
  let last: string | undefined
  for await (const event of eventsOf(answer)) {
    last = event.id
    if (event.content === 'one') break
  }
  gone.abort()
  run.progress.log('two')
  const rest = all(await open(app, id, '?follow=true', { 'last-event-id': String(last) }))
  run.finish()
  t.same((await rest).map(shown), ['two', 'ready'])
  const ids = (await all(await open(app, id))).map((event) => event.id)
  t.same((await all(await open(app, id, '?follow=true', { 'last-event-id': String(ids.at(-1)) }))).map(shown), ['ready'], 'the end is told to everybody')
  for (const unknown of ['7', '999999', '-1', 'x', '']) {
    t.same((await all(await open(app, id, '', { 'last-event-id': unknown }))).map(shown), ['queued', 'building', 'one', 'two', 'ready'], `all of it after ${unknown}`)
  }
})

t.test('a stream tells that it is alive, and a build may take as long as it likes', async (t) => {
  const app = await startBuilds(t, { listen: true, config: { heartbeat: '50ms' } })
  const id = await app.build()
  const run = await app.runner.begun(id)
  const beats: string[] = []
  for await (const event of eventsOf(await open(app, id, '?follow=true'))) {
    if (event.type === 'heartbeat') beats.push(event.timestamp)
    if (beats.length === 3) run.finish()
  }
  t.ok(beats.length >= 3)
})

t.test('a client that does not read holds up nobody, and takes no memory', async (t) => {
  const app = await startBuilds(t, { listen: true })
  const id = await app.build()
  const run = await app.runner.begun(id)
  const { port } = new URL(app.app.address())
  const idle = Array.from({ length: 10 }, () => connect(Number(port), '127.0.0.1'))
  t.teardown(() => { for (const socket of idle) socket.destroy() })
  for (const socket of idle) {
    socket.pause()
    socket.write(`GET /builds/${id}/events?follow=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ADMIN_KEY}\r\n\r\n`)
    await once(socket, 'connect')
  }
  const reader = all(await open(app, id, '?follow=true'))
  const before = buffersBytes()
  const line = 'x'.repeat(8000)
  // 12 MB of log.
  for (let count = 0; count < 1500; count++) {
    run.progress.log(line)
    if (count % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  run.finish()
  t.equal((await reader).length, 1503)
  let grownMb = Infinity
  // What was last read is let go of a little later. Beside it there are 120 MB that nobody reads.
  await until(async () => {
    grownMb = (buffersBytes() - before) / 2 ** 20
    return grownMb < 12
  }).finally(() => t.comment(`buffers grew by ${grownMb.toFixed(1)} MB`))
  t.match(await app.get(id), { status: 'ready' })
})

t.test('a log has an end, and how the build goes is told beyond it', async (t) => {
  const app = await startBuilds(t, { listen: true, config: { maxLog: '10KB' } })
  const id = await app.build()
  const run = await app.runner.begun(id)
  run.progress.log('y'.repeat(40_000))
  for (let count = 0; count < 1000; count++) run.progress.log('z'.repeat(100))
  await run.progress.pushing()
  run.finish()
  await app.become(id, 'ready')
  const events = await all(await open(app, id, '?follow=true'))
  t.same(events.slice(-3).map(shown), ['the log ends here: it may have 10240 bytes', 'pushing', 'ready'])
  t.ok((await readFile(join(app.dataDir, 'builds', id, 'log'))).length < 12_000)
})

t.test('a long line comes as several', async (t) => {
  const app = await startBuilds(t, { listen: true })
  const id = await app.build()
  const run = await app.runner.begun(id)
  run.progress.log('a'.repeat(20_000))
  run.finish()
  await app.become(id, 'ready')
  t.same((await all(await open(app, id, '?follow=true'))).map((event) => event.content?.length), [undefined, undefined, 16_384, 3616, undefined])
})

t.test('what a full disk or a crash has cut off is left out, and the end is told all the same', async (t) => {
  const app = await startBuilds(t, { listen: true })
  const id = await app.build()
  ;(await app.runner.begun(id)).finish()
  await app.become(id, 'ready')
  const log = join(app.dataDir, 'builds', id, 'log')
  // What is still to be written would come after what is written here.
  await until(async () => (await readFile(log, 'utf8')).includes('"status":"ready"'))
  const text = await readFile(log, 'utf8')
  await writeFile(log, `${text.split('\n').slice(0, 2).join('\n')}\n{"type":"log","times\n`)
  await appendFile(log, '{"type":"log","timestamp":"2026-01-31T12:00:00.000Z","content":"later"}\n{"type":"st')
  t.same((await all(await open(app, id, '?follow=true'))).map(shown), ['queued', 'building', 'later', 'ready'])
})

t.test('a stream breaks off when the server stops, and the build has failed by then', async (t) => {
  const app = await startBuilds(t, { listen: true, server: { drainTimeout: '10s' } })
  const id = await app.build()
  await app.runner.begun(id)
  const events = eventsOf(await open(app, id, '?follow=true'))
  t.same([(await events.next()).value?.status, (await events.next()).value?.status], ['queued', 'building'])
  const next = events.next().then(() => 'an end', () => 'broken off')
  await app.app.stop()
  t.notOk(app.lines.some(({ msg }) => String(msg).startsWith('connections were cut')), 'nobody was waited for')
  t.equal(await next, 'broken off')
  const after = await startBuilds(t, { dataDir: app.dataDir })
  t.match(await after.get(id), { status: 'failed', error: /^the server was stopped during the build/ })
})

t.test('clients that leave are forgotten', async (t) => {
  const app = await startBuilds(t, { listen: true })
  const id = await app.build()
  const run = await app.runner.begun(id)
  for (let count = 0; count < 20; count++) {
    const gone = new AbortController()
    const answer = await open(app, id, '?follow=true', {}, gone.signal)
    await answer.body?.getReader().read()
    gone.abort()
  }
  const openLogs = async (): Promise<number> => {
    const links = await Promise.all((await readdir('/proc/self/fd')).map(async (fd) => await readlink(`/proc/self/fd/${fd}`).catch(() => '')))
    return links.filter((link) => link.endsWith(`${id}/log`)).length
  }
  await until(async () => await openLogs() === 1)
  t.equal(await openLogs(), 1, 'that of the writer')
  run.finish()
  await app.become(id, 'ready')
  await until(async () => await openLogs() === 0)
  t.equal(await openLogs(), 0)
})
