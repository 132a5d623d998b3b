// Policies reach a real proxy in a real namespace: whole, in time, in few revisions, and again after everything that can end.
import { X509Certificate } from 'node:crypto'
import { Registry } from 'prom-client'
import t from 'tap'
import { createLog } from '../../../core/logging/log.ts'
import { MetricsText } from '../../../core/metrics/text.ts'
import { createSecrets } from '../../../core/secrets/secrets.ts'
import { ControlClient } from '../../../plugins/egress/control/client.ts'
import { createMetrics } from '../../../plugins/egress/metrics.ts'
import { FIGURES, type FigureKind } from '../../../proxy/contract/figures.ts'
import { skipReason } from '../networking/world.ts'
import { setStage, specOf, until } from './stage.ts'

const skip = skipReason()
const ofProxy = /^berth_egress_(?!up |acknowledged_revision |pushes_total|proxy_starts_total ).*$/m

t.test('a policy is enforced once the call has resolved, and lifted', { skip }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server()
  await server.egress.enforce('a', '10.100.0.2', specOf(server))
  const { revision, vms } = await stage.client.state()
  t.equal(vms, 1)
  t.equal(revision, server.egress.revision)
  await server.egress.lift('a')
  t.equal((await stage.client.state()).vms, 0)
  t.same(await server.repository.all(), [])
  await server.egress.lift('a')
  await server.egress.lift('never-seen')
  await server.egress.replace('never-seen', specOf(server))
  t.equal((await stage.client.state()).vms, 0)
  t.same(await server.egress.audit('a', { limit: 10 }), { entries: [], next: 0 })
})

t.test('guests are given the proxy\'s certificate, its hash, and a bundle that holds it', { skip }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server()
  const began = performance.now()
  const authority = await server.egress.authority()
  t.comment(`with the start of the proxy: ${Math.round(performance.now() - began)} ms`)
  t.match(new X509Certificate(authority.certificate).subject, /^CN=Berth egress/m)
  const { stdout } = await stage.world.real.run('openssl', ['x509', '-noout', '-hash'], { input: authority.certificate })
  t.equal(authority.subjectHash, stdout.trim())
  t.ok(authority.bundle.endsWith(authority.certificate))
  t.ok(Buffer.byteLength(authority.bundle) <= 2 ** 20)
  t.ok((authority.bundle.match(/BEGIN CERTIFICATE/g)?.length ?? 0) > 50, 'the public authorities too')
  await server.crash()
  t.same(await (await stage.server()).egress.authority(), authority, 'the same for the next server')
})

t.test('200 VMs that start at once need a few revisions', { skip }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server()
  await server.egress.authority()
  const before = server.egress.revision ?? 0
  const began = performance.now()
  await Promise.all(Array.from({ length: 200 }, async (_, index) => {
    await server.egress.enforce(`vm-${index}`, `10.100.1.${index}`, specOf(server, `secret-${index}`))
  }))
  const took = performance.now() - began
  const pushes = (server.egress.revision ?? 0) - before
  t.equal((await stage.client.state()).vms, 200)
  t.comment(`${pushes} revisions in ${Math.round(took)} ms`)
  t.ok(pushes < 50, `${pushes} revisions`)
  await Promise.all(Array.from({ length: 200 }, async (_, index) => { await server.egress.lift(`vm-${index}`) }))
  t.equal((await stage.client.state()).vms, 0)
})

t.test('new values are enforced once the call has resolved, under the same epoch', { skip }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server()
  const spec = specOf(server)
  await server.egress.enforce('a', '10.100.0.2', spec)
  const [before] = await server.repository.all()
  const { revision } = await stage.client.state()
  await server.egress.replace('a', server.egress.rotate(spec, { API_KEY: 'another-value' }))
  t.same(await server.repository.all(), [before])
  t.ok(((await stage.client.state()).revision ?? 0) > (revision ?? 0))
  await server.egress.enforce('a', '10.100.0.2', spec)
  t.not((await server.repository.all())[0]?.epoch, before?.epoch, 'a VM that starts anew is another machine')
})

t.test('a proxy that is ahead of the database is overtaken', { skip }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server()
  await server.egress.authority()
  await stage.client.put({ revision: 5000, vms: [] })
  await server.egress.enforce('a', '10.100.0.2', specOf(server))
  const { revision, vms } = await stage.client.state()
  t.equal(vms, 1)
  t.ok((revision ?? 0) > 5000)
})

t.test('a VM that takes over an address is the only one that has it', { skip }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server()
  await server.egress.enforce('a', '10.100.0.2', specOf(server))
  await server.egress.enforce('b', '10.100.0.2', specOf(server))
  t.equal((await stage.client.state()).vms, 1)
  t.same((await server.repository.all()).map(({ instanceId }) => instanceId), ['b'])
})

t.test('a policy that the proxy does not take keeps nobody else from theirs', { skip }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server()
  await server.egress.enforce('good', '10.100.0.2', specOf(server))
  const spec = specOf(server)
  // Stored by a server whose rules were others.
  const old = { ...spec, credentials: { API_KEY: { source: { env: 'API_KEY' }, inject: [{ as: { header: 'Host', format: '${value}' } }] } } }
  await t.rejects(server.egress.enforce('bad', '10.100.0.3', old), { code: 'egress_unavailable', message: /belongs to the transport/ })
  await server.egress.enforce('later', '10.100.0.4', specOf(server))
  t.equal((await stage.client.state()).vms, 2)
})

t.test('a value that cannot be opened is refused by the proxy, and does not stop the VM', { skip }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server()
  const spec = specOf(server)
  const foreign = { ...spec, sealed: { API_KEY: createSecrets(Buffer.alloc(32, 9)).seal('egress API_KEY', 'from-another-key') } }
  await server.egress.enforce('a', '10.100.0.2', foreign)
  t.equal((await stage.client.state()).vms, 1)
  t.match(server.log(), /secret_unavailable/)
  t.notMatch(server.log(), /from-another-key/)
})

t.test('a VM is lifted also while the proxy is down, and no later proxy knows it', { skip }, async (t) => {
  const stage = await setStage(t)
  let isBroken = false
  const server = await stage.server({
    proxy: (real) => ({
      ranges: real.ranges,
      startMs: real.startMs,
      ensure: async (signal) => {
        if (isBroken) throw new Error('broken on purpose')
        await real.ensure(signal)
      },
      requireReach: async () => { await real.requireReach() },
      isFit: async () => await real.isFit(),
      isThere: async () => await real.isThere(),
      stop: async () => { await real.stop() }
    })
  })
  await server.egress.enforce('a', '10.100.0.2', specOf(server))
  await server.egress.enforce('b', '10.100.0.3', specOf(server))
  isBroken = true
  await server.proxy.stop()
  await server.egress.lift('a')
  await t.rejects(server.egress.replace('b', specOf(server)), { code: 'egress_unavailable', message: /broken on purpose/ })
  await t.rejects(server.egress.enforce('c', '10.100.0.4', specOf(server)), { code: 'egress_unavailable' })
  isBroken = false
  await until(async () => (await stage.client.state()).vms === 1)
  t.same((await server.repository.all()).map(({ instanceId }) => instanceId), ['b'])
})

t.test('the proxy\'s figures are among the server\'s, and none are shown that are not of this moment', { skip }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server()
  const registry = new Registry()
  createMetrics(registry, () => server.egress).pushes.inc({ outcome: 'enforced' })
  const before = await registry.metrics()
  t.match(before, /^berth_egress_up 0$/m)
  t.notMatch(before, ofProxy, 'a counter at 0 would make all of its past count as new')
  await server.egress.enforce('a', '10.100.0.2', specOf(server))
  const text = await registry.metrics()
  for (const line of ['berth_egress_up 1', 'berth_egress_vms 1', `berth_egress_policy_revision ${server.egress.revision}`, `berth_egress_acknowledged_revision ${server.egress.revision}`, 'berth_egress_injected_total 0', 'berth_egress_pushes_total{outcome="enforced"} 1']) {
    t.ok(text.split('\n').includes(line), line)
  }
  await server.stop()
  const after = await registry.metrics()
  t.match(after, /^berth_egress_up 0$/m)
  t.notMatch(after, ofProxy)
})

t.test('a proxy that runs and tells no figures is logged once, however often they are read', { skip }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server({ client: Object.assign(new ControlClient(stage.paths.controlSocket), { metrics: async () => { throw new Error('no figures today') } }) })
  await server.egress.enforce('a', '10.100.0.2', specOf(server))
  const registry = new Registry()
  createMetrics(registry, () => server.egress)
  let log = ''
  const text = new MetricsText(registry, createLog({ level: 'info', destination: { write: (line) => { log += line } } }))
  for (let reading = 0; reading < 3; reading++) {
    const figures = await text.read()
    t.match(figures, /^berth_egress_up 1$/m)
    t.notMatch(figures, ofProxy)
  }
  t.equal(`${log}${server.log()}`.split('\n').filter((line) => line.includes('no figures today')).length, 1)
})

t.test('each figure that the proxy makes is in the table of its figures, and all that are not marked as its own affair are among the server\'s', { skip }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server()
  await server.egress.enforce('a', '10.100.0.2', specOf(server))
  const registry = new Registry()
  createMetrics(registry, () => server.egress)
  const linesOf = (text: string, kind: string): string[] => [...text.matchAll(new RegExp(`^# ${kind} berth_egress_.*$`, 'gm'))].map(([line]) => line).sort()
  const [ofProxy, ofServer] = [await server.egress.proxyMetrics() ?? '', await registry.metrics()]
  const isInside = (line: string): boolean => Object.entries<FigureKind>(FIGURES).some(([name, figure]) => figure.isInside === true && line.split(' ')[2] === name)
  t.same(linesOf(ofProxy, 'TYPE'), Object.entries(FIGURES).map(([name, { kind }]) => `# TYPE ${name} ${kind}`).sort())
  for (const kind of ['TYPE', 'HELP']) {
    const known = new Set(linesOf(ofServer, kind))
    t.same(linesOf(ofProxy, kind).filter((line) => !known.has(line) && !isInside(line)), [])
  }
  t.match(ofServer, /^berth_egress_exchange_faults_total 0$/m)
  t.match(ofServer, /^berth_egress_worker_cpu_seconds_total\{worker="[^"]+"\} [0-9.e-]+$/m)
})
