// A collector that does not do its part costs the spans, and one line in the log: no request waits, and nothing piles up.
import type { Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { eventually } from '../../helpers/eventually.ts'
import { startCollector } from '../../helpers/otlp.ts'
import { MANY, tracedApp, type TracedApp } from './app.ts'
import { startPeer } from './peer.ts'

const QUEUE = 64
const REQUESTS = 20

const answers = (text: string) => (socket: Socket): void => {
  socket.on('data', () => { socket.write(text) })
}

function endless (socket: Socket): void {
  socket.once('data', () => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    const piece = `${(65_536).toString(16)}\r\n${'x'.repeat(65_536)}\r\n`
    const go = (): void => { while (!socket.destroyed && socket.write(piece)); }
    socket.on('drain', go)
    go()
  })
}

setFlagsFromString('--expose-gc')
const collect: unknown = runInNewContext('gc')

function heapBytes (): number {
  if (typeof collect === 'function') collect()
  return process.memoryUsage().heapUsed
}

/** Many more spans than the queue holds. Each request is answered: none waits for the collector. */
async function drive ({ send }: TracedApp, requests: number): Promise<number> {
  let answered = 0
  for (let sent = 0; sent < requests; sent++) if ((await send('GET', '/many')).statusCode === 200) answered++
  return answered
}

const warnings = ({ lines }: TracedApp): Record<string, unknown>[] => lines.filter(({ level }) => level === 'warn' || level === 'error').filter(({ plugin }) => plugin === 'tracing')

const peers: readonly (readonly [string, (t: Test) => Promise<string>])[] = [
  ['is dead', async () => 'http://127.0.0.1:1/v1/traces'],
  ['takes connections and says nothing', async (t) => await startPeer(t, () => {})],
  ['answers what is no HTTP', async (t) => await startPeer(t, answers('hello, I am no collector\r\n\r\n'))],
  ['answers 500 with a page', async (t) => await startPeer(t, answers('HTTP/1.1 500 No\r\nContent-Length: 7\r\n\r\nhunter2'))],
  ['answers without an end', async (t) => await startPeer(t, (socket) => { endless(socket) })],
  ['closes each connection', async (t) => await startPeer(t, (socket) => { socket.destroy() })]
]

for (const [what, start] of peers) {
  t.test(`a collector that ${what} delays nothing, fills nothing, and is one line of the log`, async (t) => {
    const app = await tracedApp(t, { endpoint: await start(t), queue: QUEUE, timeout: '300ms' })
    t.equal(await drive(app, 2), 2)
    const before = heapBytes()
    t.equal(await drive(app, REQUESTS), REQUESTS)
    const grown = heapBytes() - before
    t.ok(grown < 8 * 2 ** 20, `the heap has grown by ${(grown / 2 ** 20).toFixed(1)} MiB for ${REQUESTS * MANY} spans`)
    const [warning] = await eventually('the warning', () => warnings(app).length > 0 ? warnings(app) : undefined)
    await drive(app, 2)
    t.equal(warnings(app).length, 1)
    t.match(warning, { level: 'warn', msg: 'the collector does not take spans; they are lost until it does', endpoint: String, reason: String })
    t.notMatch(JSON.stringify(warning), 'hunter2', 'nothing of its answer')
    const [, lost] = /berth_tracing_spans_total\{result="lost"\} (\d+)/.exec(await figures(app)) ?? []
    t.ok(Number(lost) > 0, `${lost} spans are counted as lost`)
    await app.app.stop()
  })
}

async function figures ({ lines }: TracedApp): Promise<string> {
  const port = lines.find(({ msg }) => msg === 'metrics served')?.['port']
  return await (await fetch(`http://127.0.0.1:${String(port)}/metrics`)).text()
}

t.test('a collector that is slow gets what fits the queue, and the rest is lost', async (t) => {
  const collector = await startCollector(t, { answer: (response) => { setTimeout(() => { response.writeHead(200).end() }, 100) } })
  const app = await tracedApp(t, { endpoint: collector.endpoint, queue: QUEUE })
  t.equal(await drive(app, 3), 3)
  await eventually('some spans', () => collector.spans().length > 0)
  t.ok(collector.spans().length < MANY)
  t.same(warnings(app), [])
})

t.test('one that comes back takes spans again, which the log says once', async (t) => {
  const collector = await startCollector(t)
  const { endpoint, port } = collector
  await collector.close()
  const app = await tracedApp(t, { endpoint, timeout: '300ms' })
  await app.send('GET', '/quick')
  await eventually('the warning', () => warnings(app).length > 0)
  const back = await startCollector(t, { port })
  await eventually('a span', async () => {
    await app.send('GET', '/quick')
    return back.spans().length > 0
  })
  await eventually('the word', () => app.lines.some(({ msg }) => msg === 'the collector takes spans again'))
  t.equal(warnings(app).length, 1)
})
