// What is told of an instance while it lives: waiting, its figures, its output, and what this server can do.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { API_VERSION, version } from '../../../core/version.ts'
import { eventually } from '../../helpers/eventually.ts'
import { decodeText } from '../../helpers/line-decoder.ts'
import { startApp } from './app.ts'

t.test('wait knows its parameters, its time, and deletion', async (t) => {
  const { call, make, host } = await startApp(t)
  host.behaviour = 'boot-only'
  await make('web')
  t.match(await call('GET', '/instances/web/wait?state=Sleeping'), { status: 400, body: { code: 'invalid_state', message: /state/ } })
  t.match(await call('GET', '/instances/web/wait'), { status: 400, body: { code: 'invalid_state' } })
  for (const timeout of ['soon', '-1s', '10', '1x']) t.match(await call('GET', `/instances/web/wait?state=Running&timeout=${timeout}`), { status: 400, body: { code: 'invalid_timeout' } }, timeout)
  t.same((await call('GET', '/instances/web/wait?state=Initializing')).body, { state: 'Initializing', timed_out: false })
  t.same((await call('GET', '/instances/web/wait?state=Running&timeout=20ms')).body, { state: 'Initializing', timed_out: true })
  t.same((await call('GET', '/instances/web/wait?state=Running&timeout=0')).body, { state: 'Initializing', timed_out: true })
  for (const timeout of ['', '6m', '720h']) t.match(await call('GET', `/instances/web/wait?state=Initializing&timeout=${timeout}`), { status: 200, body: { timed_out: false } }, `${timeout}: the longest wait, or the usual one`)
  const waiting = call('GET', '/instances/web/wait?state=Stopped&timeout=10m')
  await call('DELETE', '/instances/web')
  const answer = await waiting
  t.ok(answer.status === 404 || answer.body['state'] === 'Stopped')
  t.equal((await call('GET', '/instances/web/wait?state=Stopped')).status, 404)
})

t.test('a wait that the end of the server cuts off has not come to an end', async (t) => {
  const { app, call, make, host } = await startApp(t)
  host.behaviour = 'boot-only'
  await make('web')
  const waiting = call('GET', '/instances/web/wait?state=Running')
  await new Promise((resolve) => { setTimeout(resolve, 50) })
  await app.stop()
  const { status, body, headers } = await waiting
  t.match({ status, body }, { status: 503, body: { code: 'unavailable' } })
  t.match(headers, { 'retry-after': /^\d+$/ })
})

t.test('stat and stats answer in their forms', async (t) => {
  const { call, make, host, waitFor } = await startApp(t)
  const id = await make('web')
  await waitFor('web', 'Running')
  host.files.set('/a', { exists: true, type: 'file', mode: 0o644, sizeBytes: 5 })
  host.files.set('/l', { exists: true, type: 'symlink', mode: 0o777, sizeBytes: 1, linkTarget: '/a' })
  t.same((await call('GET', '/instances/web/stat?path=/a')).body, { exists: true, is_file: true, is_dir: false, is_symlink: false, mode: 0o644, size: 5 })
  t.match((await call('GET', '/instances/web/stat?path=/l&follow_links=false')).body, { is_symlink: true, link_target: '/a' })
  t.same((await call('GET', '/instances/web/stat?path=/none')).body, { exists: false })
  t.equal((await call('GET', '/instances/web/stat')).status, 400)
  t.match((await call('GET', '/instances/web/stats')).body, { instance_id: id, instance_name: 'web', allocated_vcpus: 2, allocated_memory_bytes: 2 ** 30, cpu_seconds: 0, memory_rss_bytes: 0, network_rx_bytes: 0 })
})

t.test('a stat that the guest never answers is answered all the same, and given up in the guest', async (t) => {
  const { call, host, make, waitFor } = await startApp(t)
  await make('web')
  await waitFor('web', 'Running')
  host.answersFiles = false
  t.match(await call('GET', '/instances/web/stat?path=/a'), { status: 503, body: { code: 'agent_unavailable' } })
  t.same(host.vm.cancelled, ['stat /a'])
})

t.test('without an agent exec, cp and stat answer 501', async (t) => {
  const { call, make, waitFor, host } = await startApp(t)
  await make('bare', { skip_guest_agent: true })
  t.match((await waitFor('bare', 'Running')).body, { state: 'Running' })
  t.equal(host.vm.workload?.agent, false)
  t.match(await call('GET', '/instances/bare/stat?path=/'), { status: 501, body: { code: 'not_supported', message: /agent/ } })
})

t.test('logs are events of JSON strings', async (t) => {
  const { call, make, host, waitFor } = await startApp(t, { config: { logs: { heartbeat: '20ms' } } })
  await make('web')
  await waitFor('web', 'Running')
  await host.vm.print('one\ntwo "quoted"\nthree')
  const events = (text: string): unknown[] => decodeText(text).map(({ data }) => data)
  const answer = await call('GET', '/instances/web/logs')
  t.equal(answer.status, 200)
  t.match(answer.headers, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', 'x-accel-buffering': 'no' })
  t.same(events(answer.text), ['one', 'two "quoted"', 'three'])
  t.same(events((await call('GET', '/instances/web/logs?tail=1')).text), ['three'])
  t.same(events((await call('GET', '/instances/web/logs?tail=0')).text), [])
  const followed = call('GET', '/instances/web/logs?follow=true')
  await new Promise((resolve) => setTimeout(resolve, 100))
  await host.vm.print(' and a half\nlast')
  await host.vm.exit()
  const { text } = await followed
  t.same(events(text), ['one', 'two "quoted"', 'three and a half', 'last'])
  t.match(text, /^: log\n(?:: ping\n)*data: .*\n\n/, 'comments are lines of their own, and end no event')
  t.match(text, /: ping\n/, 'a silent log tells that it is alive')
  t.match(events((await call('GET', '/instances/web/logs?source=hypeman')).text), [/create: by a boot: row .*; done in [\d.]+ ms/, /ended: success/])
  t.same(events((await call('GET', '/instances/web/logs?source=vmm')).text), [])
  t.equal((await call('GET', '/instances/web/logs?source=kernel')).status, 400)
  t.equal((await call('GET', '/instances/nothing/logs')).status, 404)
})

t.test('a log grows no larger than it may, and a flooded report ends the VM', async (t) => {
  const { make, host, waitFor, dataDir } = await startApp(t, { config: { logs: { maxSize: '1MB', checkInterval: '100ms' } } })
  const id = await make('web')
  await waitFor('web', 'Running')
  const rotated = new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      if (host.vm.rotations.length === 0) return
      clearInterval(timer)
      resolve()
    }, 20)
  })
  await host.vm.print('x'.repeat(2 ** 20 + 1))
  await rotated
  const folder = join(dataDir, 'instances', id)
  t.equal((await stat(join(folder, 'output.log.1'))).size, 2 ** 20 + 1)
  t.equal((await stat(join(folder, 'output.log'))).size, 0)
  const { writeFile } = await import('node:fs/promises')
  await writeFile(host.vm.spec.files.report, 'x'.repeat(100_000))
  t.match((await waitFor('web', 'Stopped')).body, { state: 'Stopped' })
})

t.test('a rotation that fails midway is finished by a later round, and the log is read meanwhile', async (t) => {
  const { make, host, waitFor, dataDir, call } = await startApp(t, { config: { logs: { maxSize: '1MB', checkInterval: '100ms' } } })
  const id = await make('web')
  await waitFor('web', 'Running')
  const folder = join(dataDir, 'instances', id)
  host.failures.set('rotate', new Error('not now'))
  await host.vm.print(`${'x'.repeat(2 ** 20)}\nlast\n`)
  await eventually('the rotation has begun', async () => (await stat(join(folder, 'output.log.1')).catch(() => undefined)) !== undefined)
  t.match((await call('GET', '/instances/web/logs?tail=1')).text, 'last')
  host.failures.clear()
  await eventually('it is finished', () => host.vm.rotations.length > 0, { limitMs: 30_000 })
  t.same(host.vm.rotations[0], join('output', join(folder, 'output.log')))
  await host.vm.print('next\n')
  t.equal((await stat(join(folder, 'output.log'))).size, 5)
})

t.test('capabilities say how VMs run', async (t) => {
  const { call } = await startApp(t)
  const { body } = await call('GET', '/capabilities')
  t.same(body['instances'], { vcpus: { min: 1, max: 16, default: 2 }, size_bytes: { min: 64 * 2 ** 20, max: 32 * 2 ** 30, default: 2 ** 30 }, overlay_size_bytes: { min: 16 * 2 ** 20, max: 100 * 2 ** 30, default: 10 * 2 ** 30 } })
  t.match(Object(body).runtimes.find(({ name }: { name: string }) => name === 'qemu'), { available: true, features: ['snapshots', 'standby', 'fork', 'removable-disks', 'balloon-control'], acceleration: 'tcg', reason: 'a fake runs nothing' })
  t.match(body, {
    default_runtime: { name: 'qemu', available: true },
    server: { version, api_version: API_VERSION },
    host: { os: 'linux' },
    features: ['instances', 'images', 'exec', 'logs'], network: { model: 'bridge', guest_to_guest: false }
  })
})
