// Instances on a host whose room is counted: who is short of it while the proxy that instances go out through does not answer, and limits of disks that cannot be changed.
import t from 'tap'
import { eventually } from '../../helpers/eventually.ts'
import { create, SMALL, startResources, startWithSpares, TEN } from '../resources/app.ts'
import { until } from './crash.ts'
import { asked, hostWith, NEXT, REAL, unavailable } from './egress-app.ts'
import { EgressUnavailable } from './scripted-egress.ts'
import { ScriptedHost } from './scripted.ts'
import { alive } from './templates-app.ts'

t.test('while the proxy takes no policy, who asks for room that is not there is told so at once, the instance can be deleted, and the server ends', async (t) => {
  const { host, egress } = hostWith(t)
  const app = await startResources(t, { ...TEN, capacity: { ...TEN.capacity, cpu: 1 } }, { host })
  t.match(await create(app, 'web', asked), { status: 201 })
  await app.waitFor('web', 'Running')
  host.failures.set('replace', EgressUnavailable())
  t.match(await app.call('PATCH', '/instances/web', { env: { SECRET: NEXT } }), unavailable)
  const began = performance.now()
  const full = { status: 409, body: { code: 'insufficient_resources', message: /cpu/ } }
  t.match(await app.call('POST', '/instances/web/fork', { name: 'twin', from_running: true }), full)
  t.match(await create(app, 'other'), full)
  t.ok(performance.now() - began < 5000, 'nobody waits for the proxy')
  t.equal(egress.valueOf(String((await app.call('GET', '/instances/web')).body['id']), 'SECRET'), REAL)
  t.equal((await app.call('DELETE', '/instances/web')).status, 204)
  await app.app.stop()
})

t.test('where the limit of disks cannot be changed, VMs with one have a template of their own, and leave that of the others alone', async (t) => {
  const host = new ScriptedHost()
  host.diskLimits = 'fixed'
  host.replacesDisks = false
  const app = await startWithSpares(t, TEN, { host })
  const wayOf = async (name: string, fields?: Record<string, unknown>): Promise<string> => await app.wayOf(await app.make(name, { ...SMALL, ...fields }))
  await app.make('first', SMALL)
  await until(async () => await app.count('templates') === 1)
  t.equal(await wayOf('first-limited', { disk_io_bps: '10MB/s' }), 'by a boot')
  await eventually('there is another template', async () => await app.count('templates') === 2, { limitMs: 10_000 })
  t.equal(await wayOf('second-limited', { disk_io_bps: '5MB/s' }), 'from a template')
  t.equal(host.vm.spec.diskBytesPerSecond, 5 * 2 ** 20)
  t.equal(await wayOf('second'), 'from a template')
  t.equal(host.vm.spec.diskBytesPerSecond, undefined)
  await app.waitFor('first-limited', 'Running')
  for (const call of ['stop', 'start']) t.equal((await app.call('POST', `/instances/first-limited/${call}`)).status, 200)
  t.ok(host.vm.restoredFrom)
  await app.app.stop()
  const next = await startWithSpares(t, TEN, { host, dataDir: app.dataDir })
  t.equal(await next.wayOf(await next.make('third-limited', { ...SMALL, disk_io_bps: '10MB/s' })), 'from a template', 'also of the next server')
  t.equal(await next.count('templates'), 2)
})

t.test('a spare VM whose limit of disks cannot be changed becomes no instance with another', async (t) => {
  const host = new ScriptedHost()
  host.diskLimits = 'fixed'
  const app = await startWithSpares(t, TEN, { host })
  await app.warmUp(SMALL)
  for (const name of ['limited', 'more-limited']) {
    const id = await app.make(name, { ...SMALL, disk_io_bps: '10MB/s' })
    t.equal(host.vms.find(({ spec }) => spec.id === id)?.spec.diskBytesPerSecond, 10 * 2 ** 20, name)
    await eventually('the other template is there, and no spare VM of it', async () => await app.count('templates') === 2 && alive(app).length === (name === 'limited' ? 3 : 4), { limitMs: 10_000 })
  }
  t.equal(await app.count('spares'), 1)
  t.equal(await app.wayOf(await app.make('free', SMALL)), 'from a spare VM')
})
