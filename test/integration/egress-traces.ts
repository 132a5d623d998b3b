// Traces of a real server with a real machine, as a receiver from elsewhere gets them: a create, a restore, and a request of the guest's to its origin, each step with its parent.
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'
import { eventually } from '../helpers/eventually.ts'
import { drawTrace, type Collector, type ReceivedSpan } from '../helpers/otlp.ts'
import { startReceiver } from '../helpers/otlp-receiver.ts'
import { API } from './egress-enforcement/far/contract.ts'
import { withoutTemplates } from '../helpers/server.ts'
import { fetchFrom, guestOf, mediated, SECRET, setScene, type Guest, type Scene } from './egress-enforcement/scene.ts'

const PRIVATE = 'hunter2-in-the-environment'
const reason = missingPrivileges() ?? false

if (reason === false) await t.test('a collector gets traces', { timeout: 900_000 }, work)
else t.plan(0, reason)

interface Place { readonly scene: Scene, readonly collector: Pick<Collector, 'spans'> }

async function work (t: Test): Promise<void> {
  const collector = await startReceiver(t)
  const scene = await setScene(t, 24, { ...withoutTemplates.plugins, tracing: { config: { endpoint: collector.endpoint, interval: '200ms' } } })
  const place = { scene, collector }
  let guest: Guest | undefined
  await t.test('of a create: API, operation, host commands, driver, VMM and guest', async (t) => { guest = await creates(t, place) })
  if (guest === undefined) return
  const { id } = guest
  await t.test('of a standby and a restore', async (t) => { await restores(t, place, id) })
  await t.test('of a mediated request: the way to its origin, the origin and the answer', async (t) => { await mediates(t, place, await guestOf(scene.server, id)) })
  const all = JSON.stringify(collector.spans())
  for (const secret of [PRIVATE, SECRET, scene.server.key]) t.notMatch(all, secret)
}

async function creates (t: Test, place: Place): Promise<Guest> {
  const { scene, collector } = place
  const { trace, caller, answer } = await traced(t, place, 'POST', '/instances', {
    name: 'traced', image: scene.image, size: '128MB', vcpus: 1, overlay_size: '64MB', entrypoint: [], cmd: ['/bin/sleep', '3600'], ...mediated('all'), env: { REAL: SECRET, PRIVATE }
  })
  const [root, operation, launch, qmp, coming, hello, run] = await steps(place, trace, ['POST /instances', 'instance create', 'launch VM qemu', /^QMP /, 'guest until its program runs', 'guest hello', 'guest run'])
  t.equal(root?.parent, caller)
  t.equal(operation?.parent, root?.id)
  t.equal(launch?.parent, operation?.id)
  t.equal(qmp?.parent, launch?.id)
  t.equal(coming?.parent, operation?.id)
  t.equal(hello?.parent, coming?.id)
  t.equal(run?.parent, coming?.id)
  t.ok(named(place, trace, /^command /), 'and commands of the host')
  t.notMatch(JSON.stringify(collector.spans().filter((span) => span.trace === trace)), String(answer['id']), 'no id of a path')
  isWhole(t, place, trace, caller)
  return await guestOf(scene.server, String(answer['id']))
}

async function restores (t: Test, place: Place, id: string): Promise<void> {
  const standby = await traced(t, place, 'POST', `/instances/${id}/standby`)
  await steps(place, standby.trace, ['guest sleep', 'instance standby', 'POST /instances/:id/standby'])
  const { trace, caller } = await traced(t, place, 'POST', `/instances/${id}/restore`)
  const [top, restoring, vm, wake] = await steps(place, trace, ['POST /instances/:id/restore', 'instance restore', 'restore VM qemu', 'guest wake'])
  t.equal(top?.parent, caller)
  t.equal(restoring?.parent, top?.id)
  t.equal(vm?.parent, restoring?.id)
  t.ok(wake)
  isWhole(t, place, trace, caller)
}

async function mediates (t: Test, place: Place, guest: Guest): Promise<void> {
  const [trace, caller] = ids()
  const path = `/${randomBytes(8).toString('hex')}`
  await fetchFrom(guest, `https://${API.host}${path}`, `traceparent: 00-${trace}-${caller}-01`)
  const [root, way, resolve, connect, origin, answer] = await steps(place, trace, ['egress GET', 'way to the origin', 'resolve', 'connect', 'origin GET', 'answer'])
  t.match(root, { parent: caller, kind: 'SERVER', attributes: { 'berth.instance_id': guest.id, 'server.address': API.host, 'http.request.method': 'GET', 'http.response.status_code': '200', 'berth.egress.credentials': 'API_KEY' } })
  for (const [step, parent] of [[way, root], [resolve, way], [connect, way], [origin, root], [answer, root]]) t.equal(step?.parent, parent?.id, `${String(step?.name)} is below ${String(parent?.name)}`)
  t.equal(origin?.kind, 'CLIENT')
  isWhole(t, place, trace, caller)
  const seen = (await place.scene.far.seen()).find(({ url }) => url === path)
  t.match(seen, { authorization: `Bearer ${SECRET}` })
  t.equal(seen?.traceparent, undefined, "the guest's trace is nothing of the origin's")
  t.notMatch(JSON.stringify(place.collector.spans()), path, 'nor is the path of the collector')
}

function ids (): readonly [string, string] {
  return [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')]
}

/** A request with a trace of the caller's. */
async function traced (t: Test, { scene: { server } }: Place, method: string, path: string, body: object = {}): Promise<{ readonly trace: string, readonly caller: string, readonly answer: Record<string, unknown> }> {
  const [trace, caller] = ids()
  const response = await fetch(`${server.url}${path}`, {
    method, body: JSON.stringify(body), headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json', traceparent: `00-${trace}-${caller}-01` }
  })
  const answer = await response.json() as Record<string, unknown>
  if (!response.ok) throw new Error(JSON.stringify(answer))
  t.equal(response.headers.get('x-trace-id'), trace)
  return { trace, caller, answer }
}

function named ({ collector }: Place, trace: string, name: string | RegExp): ReceivedSpan | undefined {
  return collector.spans().find((span) => span.trace === trace && (typeof name === 'string' ? span.name === name : name.test(span.name)))
}

/** Waits for each of these spans of a trace. */
async function steps (place: Place, trace: string, names: readonly (string | RegExp)[]): Promise<ReceivedSpan[]> {
  return await Promise.all(names.map(async (name) => await eventually(`the span ${String(name)}`, () => named(place, trace, name), { explain: () => drawTrace(place.collector.spans(), trace) })))
}

/** Each step but the first has a parent that came, too. */
function isWhole (t: Test, { collector }: Place, trace: string, caller: string): void {
  const spans = collector.spans().filter((span) => span.trace === trace)
  const known = new Set([caller, ...spans.map(({ id }) => id)])
  t.same(spans.filter(({ parent }) => !known.has(parent)).map(({ name }) => name), [], 'each step has its parent')
  t.comment(`\n${drawTrace(collector.spans(), trace)}`)
}
