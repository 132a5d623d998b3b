// Instances that work for another plugin, on a scripted host.
import { once } from 'node:events'
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { WebSocket } from 'ws'
import { authorization } from '../../../core/bare-app.ts'
import { eventually } from '../../../helpers/eventually.ts'
import { ScriptedHost } from '../scripted.ts'
import { never, refused, request, startWithWorkers } from '../workers-app.ts'

t.test('it is an instance like any other, which runs the given program and nothing of the image\'s', async (t) => {
  const app = await startWithWorkers(t)
  const { id } = await app.workers.create(request())
  const { body } = await app.waitFor(id, 'Running')
  t.equal(body['state'], 'Running')
  t.match((await app.call('GET', '/instances/build-1')).body, { id, name: 'build-1', vcpus: 2, size: '768MB', tags: { build: '1' }, network: { enabled: false } })
  t.same(app.host.vm.workload?.argv, ['/bin/builder', '--wait'])
  t.match(app.host.vm.workload, { agent: true })
  t.notOk(app.host.vm.workload?.network)
  t.same(app.workers.tagged('build'), ['1'])
  t.same(app.workers.tagged('other'), [])
  await t.rejects(app.workers.create(request()), { code: 'name_conflict' })
  await t.rejects(app.workers.create(request({ name: 'b', image: 'missing' })), { code: 'invalid_request' })
  await t.rejects(app.workers.create(request({ name: 'b', network: 'direct' })), { code: 'plugin_disabled' })
})

t.test('its memory is written to no disk, whoever asks', async (t) => {
  const app = await startWithWorkers(t)
  const { id } = await app.workers.create(request())
  await app.waitFor(id, 'Running')
  t.match(await app.call('POST', '/instances/build-1/standby'), { status: 403, body: { code: 'Forbidden', message: /^standby: instance build-1 works for the plugin builds/ } })
  t.match(await app.call('POST', '/instances/build-1/fork', { name: 'copy', from_running: true }), { status: 403, body: { message: /^fork: / } })
  t.equal((await app.call('GET', '/instances/build-1')).body['state'], 'Running')
})

t.test('nobody gets into it, or changes it, with the scopes of instances', async (t) => {
  const host = new ScriptedHost()
  host.connect()
  const app = await startWithWorkers(t, { host, listen: true })
  const { id } = await app.workers.create(request())
  await app.waitFor(id, 'Running')
  t.match(await app.call('GET', '/instances/build-1/stat?path=/'), refused)
  for (const action of ['stop', 'start', 'restore']) t.match(await app.call('POST', `/instances/${id}/${action}`), refused, action)
  t.match(await app.call('PATCH', '/instances/build-1', { env: { A: 'b' } }), refused)
  t.match(await app.call('POST', '/instances/build-1/volumes/v', { mount_path: '/x' }), refused)
  for (const path of ['logs', 'logs?follow=true']) t.match(await app.call('GET', `/instances/${id}/${path}`), refused, path)
  t.match(await app.call('POST', `/instances/${id}/auto-standby/hold`), refused)
  for (const way of ['exec', 'cp', 'forward?port=80']) {
    const socket = new WebSocket(`${app.app.address().replace('http', 'ws')}/instances/build-1/${way}`, { headers: authorization })
    const [error]: unknown[] = await once(socket, 'error').catch((fault: unknown) => [fault])
    t.match(String(error), /403/, way)
  }
  t.equal((await app.call('GET', '/instances/build-1')).body['state'], 'Running')
  t.equal((await app.call('DELETE', '/instances/build-1')).status, 204, 'what its plugin has left can be removed')
})

t.test('it is connected as is asked', async (t) => {
  const host = new ScriptedHost()
  const { network, egress } = host.mediate()
  const app = await startWithWorkers(t, { host })
  const made: Record<string, string> = {}
  for (const kind of ['none', 'direct', 'all', 'http_https_only'] as const) made[kind] = (await app.workers.create(request({ name: `b-${kind.replaceAll('_', '-')}`, network: kind }))).id
  t.same([...network.ports.keys()].sort(), [made['direct'], made['all'], made['http_https_only']].sort())
  t.same([...egress.policies.keys()].sort(), [made['all'], made['http_https_only']].sort())
  for (const mode of ['all', 'http_https_only']) t.equal(network.ports.get(made[mode] ?? '')?.egress, mode)
  t.match(await app.call('GET', '/instances/b-all/egress'), { status: 403, body: { code: 'Forbidden', message: /^egress: instance b-all works for the plugin builds/ } }, 'whom it calls is its plugin\'s alone')
})

t.test('the link is there once the program runs', async (t) => {
  const host = new ScriptedHost()
  host.behaviour = 'boot-only'
  const lines: Array<Record<string, unknown>> = []
  const app = await startWithWorkers(t, { host, lines })
  const { id } = await app.workers.create(request())
  await appendFile(join(app.dataDir, 'instances', id, 'vmm.log'), 'Kernel panic - not syncing\n')
  await t.rejects(app.workers.link(id, 50, never), { code: 'agent_unavailable' })
  t.match(lines.find(({ msg }) => msg === 'the guest of a worker does not answer'), { instance: id, console: /Kernel panic - not syncing/ }, 'its console, which goes with it, is in the log')
  const gone = new AbortController()
  const waiting = app.workers.link(id, 5000, gone.signal)
  gone.abort(new Error('given up'))
  await t.rejects(waiting, { message: 'given up' })
  const linking = app.workers.link(id, 5000, never)
  host.behaviour = 'run'
  host.vm.bus.emit('unlink')
  const link = await linking
  t.match(await link.stat('/none', { follow: true }), { exists: false })
  await host.vm.exit({ exitCode: 127, error: '/bin/builder: not found' })
  await t.rejects(app.workers.link(id, 5000, never), { code: 'invalid_state', message: /build-1 has ended: .*not found/ })
  await t.rejects(app.workers.link('nobody', 5000, never), { code: 'not_found' })
})

t.test('it is removed at once, by id or name, once or twice, and no instance of a caller with it', async (t) => {
  const app = await startWithWorkers(t)
  const { id } = await app.workers.create(request())
  await app.waitFor(id, 'Running')
  await app.make('web')
  const linking = app.workers.link(id, 5000, never)
  await linking
  await Promise.all([app.workers.remove('build-1'), app.workers.remove(id)])
  await app.workers.remove(id)
  t.same(app.host.vms[0]?.shutdowns, [], 'without a grace')
  t.equal(app.host.vms[0]?.state.status, 'gone')
  t.equal((await app.call('GET', `/instances/${id}`)).status, 404)
  await app.workers.remove('web')
  await app.workers.remove(id.slice(0, 3))
  t.equal((await app.call('GET', '/instances/web')).status, 200, 'it is no worker')
})

t.test('it goes on when the server does not, and the next one can remove it', async (t) => {
  const before = await startWithWorkers(t)
  const { id } = await before.workers.create(request({ volumeOwner: 'workers-user' }))
  await before.waitFor(id, 'Running')
  const { host, dataDir } = before
  await before.app.stop()
  const after = await startWithWorkers(t, { host, dataDir })
  t.ok(await after.workers.link(id, 5000, never))
  await after.workers.remove('build-1')
  t.equal(host.vm.state.status, 'gone')
  t.same((await after.call('GET', '/instances')).text, '[]')
})

t.test('one whose plugin is off by now is removed, with its VM; one whose plugin has started, and an instance of a caller, stay', async (t) => {
  const before = await startWithWorkers(t)
  const left = await before.workers.create(request())
  const own = await before.workers.create(request({ name: 'own', volumeOwner: 'workers-user' }))
  const web = await before.make('web')
  for (const id of [left.id, own.id]) await before.waitFor(id, 'Running')
  const { host, dataDir } = before
  await before.app.stop()
  const after = await startWithWorkers(t, { host, dataDir })
  await eventually('it is gone', async () => (await after.call('GET', `/instances/${left.id}`)).status === 404, { limitMs: 10_000 })
  t.equal(host.vms[0]?.state.status, 'gone')
  await after.workers.link(own.id, 5000, never)
  t.same(await Promise.all([own.id, web].map(async (id) => (await after.call('GET', `/instances/${id}`)).status)), [200, 200])
})
