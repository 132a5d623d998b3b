// Traces of a real server with a real machine: a create and a restore, each step with its parent, as a collector gets them.
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { eventually } from '../helpers/eventually.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { drawTrace, startCollector, type ReceivedSpan } from '../helpers/otlp.ts'
import { startTestServer } from '../helpers/server.ts'

const SECRET = 'hunter2-in-the-environment'
const collector = await startCollector(t)
const server = await startTestServer(t, { plugins: { tracing: { config: { endpoint: collector.endpoint, interval: '200ms' } } } })
const image = await push(server, await busyboxImage(), 'traces/busybox:latest')

/** A request with a trace of the caller's. */
async function traced (method: string, path: string, body: object = {}): Promise<{ readonly trace: string, readonly caller: string, readonly answer: Record<string, unknown> }> {
  const [trace, caller] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')]
  const response = await fetch(`${server.url}${path}`, {
    method, body: JSON.stringify(body), headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json', traceparent: `00-${trace}-${caller}-01` }
  })
  const answer = await response.json() as Record<string, unknown>
  if (!response.ok) throw new Error(JSON.stringify(answer))
  t.equal(response.headers.get('x-trace-id'), trace)
  return { trace, caller, answer }
}

const named = (trace: string, name: string | RegExp): ReceivedSpan | undefined => collector.spans().find(span => span.trace === trace && (typeof name === 'string' ? span.name === name : name.test(span.name)))

/** Waits for each of these spans of a trace, and says by whom each stands. */
async function steps (trace: string, names: readonly (string | RegExp)[]): Promise<ReceivedSpan[]> {
  return await Promise.all(names.map(async name => await eventually(`the span ${String(name)}`, () => named(trace, name), { explain: () => drawTrace(collector.spans(), trace) })))
}

t.test('a create, a standby and a restore: API, operation, host commands, driver, VMM and guest', { timeout: 900_000 }, async (t) => {
  const create = await traced('POST', '/instances', { name: 'traced', image, size: '128MB', vcpus: 1, overlay_size: '64MB', entrypoint: [], cmd: ['/bin/sleep', '3600'], env: { SECRET } })
  const id = String(create.answer['id'])
  const [root, operation, launch, qmp, coming, hello, run] = await steps(create.trace, ['POST /instances', 'instance create', 'launch VM qemu', /^QMP /, 'guest until its program runs', 'guest hello', 'guest run'])
  t.equal(root?.parent, create.caller)
  t.equal(operation?.parent, root?.id)
  t.equal(launch?.parent, operation?.id)
  t.equal(qmp?.parent, launch?.id)
  t.equal(coming?.parent, operation?.id)
  t.equal(hello?.parent, coming?.id)
  t.equal(run?.parent, coming?.id)
  t.ok(named(create.trace, /^command /), 'and commands of the host')
  t.comment(`\n${drawTrace(collector.spans(), create.trace)}`)

  const standby = await traced('POST', `/instances/${id}/standby`)
  const [sleeping] = await steps(standby.trace, ['guest sleep', 'instance standby', 'POST /instances/:id/standby'])
  t.ok(sleeping)
  const restore = await traced('POST', `/instances/${id}/restore`)
  const [top, restoring, vm, wake] = await steps(restore.trace, ['POST /instances/:id/restore', 'instance restore', 'restore VM qemu', 'guest wake'])
  t.equal(top?.parent, restore.caller)
  t.equal(restoring?.parent, top?.id)
  t.equal(vm?.parent, restoring?.id)
  t.ok(wake)
  t.comment(`\n${drawTrace(collector.spans(), restore.trace)}`)

  const all = JSON.stringify(collector.spans())
  t.notMatch(all, SECRET)
  t.notMatch(all, server.key)
  t.notMatch(all, id, 'no id of a path')
  await server.sdk.instances.delete(id)
})
