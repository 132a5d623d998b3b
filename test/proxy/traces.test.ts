// What the proxy tells of requests for traces, and what of a guest's trace reaches an origin.
import t from 'tap'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { eventually } from '../helpers/eventually.ts'
import { auditLine } from '../../proxy/audit/line.ts'
import { TracedRequests } from '../../proxy/audit/traced.ts'
import type { TracedEntry, TracingPolicy } from '../../proxy/contract/control.ts'
import { ask, openTls } from './helpers/guest.ts'
import { vmPolicy } from './helpers/proxy.ts'
import { setStage, type Stage } from './helpers/setup.ts'

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

async function enforce ({ proxy, guest }: Stage, revision: number, tracing?: TracingPolicy): Promise<void> {
  const answer = await proxy.call('PUT', '/policy', { revision, vms: [vmPolicy(guest, [{}])], ...tracing === undefined ? {} : { tracing } })
  if (answer.status !== 200) throw new Error(answer.body)
}

async function traced ({ proxy }: Stage): Promise<TracedEntry[]> {
  return JSON.parse((await proxy.call('GET', '/traces')).body).entries
}

async function get (stage: Stage, path: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  const { status } = await ask(stage.proxy, stage.guest, { name: 'api.good.test', path, headers: { host: stage.host('api.good.test'), ...headers } })
  return status
}

/** The next ones, with all that are told once. */
async function next (stage: Stage, count: number): Promise<TracedEntry[]> {
  const found: TracedEntry[] = []
  return await eventually(`${count} requests`, async () => {
    found.push(...await traced(stage))
    return found.length >= count && found
  })
}

t.test('while nobody takes traces, nothing is told, and a guest\'s trace goes on as any other header', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  t.equal(await get(stage, '/', { traceparent: PARENT, tracestate: 'a=b' }), 200)
  await stage.proxy.audited(`vm-${stage.guest}`, (entries) => entries.length > 0)
  t.same(await traced(stage), [])
  t.match(origin.seen[0]?.headers, { traceparent: PARENT, tracestate: 'a=b' })
})

t.test('the steps of a request are told once, in their order, and are not in the log', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  await enforce(stage, 10, { passTraceparent: false })
  t.equal(await get(stage, '/first?secret', { traceparent: PARENT, tracestate: 'a=b' }), 200)
  t.equal(await get(stage, '/second', { traceparent: 'hunter2' }), 200)
  const [first, second] = await next(stage, 2)
  t.match(first, { vm: `vm-${stage.guest}`, host: 'api.good.test', status: 200, path: '/first', injected: ['API_KEY'], trace: { parent: PARENT } })
  const { resolvedMs = -1, openedMs = -1, sentMs = -1, answeredMs = -1 } = first?.trace ?? {}
  const order = [0, resolvedMs, openedMs, sentMs, answeredMs, (first?.durationMs ?? 0) + 0.01]
  t.same(order, order.toSorted((a, b) => a - b), 'one after the other')
  t.notOk(JSON.stringify(second?.trace).includes('hunter2'), 'what is no trace is passed over')
  t.equal(second?.trace.resolvedMs, undefined, 'a connection that was there is no step of this request')
  t.same(await traced(stage), [], 'each is told once')
  for (const { headers } of origin.seen) t.same([headers['traceparent'], headers['tracestate']], [undefined, undefined], "a guest's trace stays here")
  t.notMatch(JSON.stringify(await stage.proxy.audit(`vm-${stage.guest}`)), '"trace"')
})

t.test('over HTTP/2, and when it is to go on, it does', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  await enforce(stage, 10, { passTraceparent: true })
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test', { alpn: ['h2'] })
  const session = connectHttp2('https://api.good.test', { createConnection: () => socket })
  const stream = session.request({ ':path': '/', ':authority': stage.host('api.good.test'), traceparent: PARENT })
  await once(stream.resume(), 'close')
  session.destroy()
  const [entry] = await next(stage, 1)
  t.match(entry, { protocol: 'h2', status: 200, trace: { parent: PARENT, sentMs: Number, answeredMs: Number } })
  t.equal(origin.seen[0]?.headers['traceparent'], PARENT)
})

t.test('a refusal has a trace, too', async (t) => {
  const stage = await setStage(t)
  await enforce(stage, 10, { passTraceparent: false })
  const answer = await ask(stage.proxy, stage.guest, { name: 'api.good.test', path: '/', headers: { host: 'other.test', traceparent: PARENT } })
  t.equal(answer.status, 421)
  const [entry] = await next(stage, 1)
  t.match(entry, { reason: 'misdirected', trace: { parent: PARENT } })
  t.equal(entry?.trace.sentMs, undefined)
  t.match((await stage.proxy.call('GET', '/metrics')).body, /^berth_egress_traces_dropped_total 0$/m)
})

t.test('what the server does not ask for makes room, and the log gets each line without its steps', async (t) => {
  const logged: string[] = []
  const requests = new TracedRequests({ add: (_vm, line) => { logged.push(line) }, room: async () => undefined })
  requests.isOn = true
  for (let port = 0; port < 5000; port++) requests.add('box', auditLine({ vm: 'box', revision: 1, protocol: 'h2', host: ',"trace":{', port, injected: [], bytesIn: 0, bytesOut: 0, durationMs: 1, trace: { sentMs: 0.5 } }))
  const kept = requests.take()
  t.equal(kept.length, 4096)
  t.equal(requests.dropped, 904)
  t.match([kept[0], kept.at(-1)], [{ port: 904 }, { port: 4999, trace: { sentMs: 0.5 } }])
  t.equal(logged.length, 5000)
  t.strictSame(Object.keys(JSON.parse(logged[0] ?? '')), ['vm', 'time', 'revision', 'protocol', 'host', 'port', 'injected', 'bytesIn', 'bytesOut', 'durationMs'])
})
