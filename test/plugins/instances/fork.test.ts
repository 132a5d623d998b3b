// Forks on a scripted host: what they share with their source and what they do not, from each state to each state, and what failures leave.
import { appendFile, open, readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openDatabase } from './database.ts'
import { startApp, type TestApp } from './app.ts'
import { crashAt, until } from './crash.ts'
import type { ImagingStep } from './scripted.ts'

interface Source extends TestApp { readonly id: string, folder (id: unknown): string }

async function sourceIn (t: Test, state: 'Running' | 'Standby' | 'Stopped'): Promise<Source> {
  const app = await startApp(t)
  const id = await app.make('web', { env: { A: 'b' }, tags: { team: 'x' }, vcpus: 2, size: '256MB', cmd: ['x'], snapshot_policy: { compression: { enabled: true } } })
  await app.waitFor('web', 'Running')
  const folder = (of: unknown): string => join(app.dataDir, 'instances', String(of))
  await appendFile(join(folder(id), 'overlay.ext4'), 'written by the source')
  if (state === 'Standby') await app.call('POST', '/instances/web/standby')
  if (state === 'Stopped') await app.call('POST', '/instances/web/stop')
  return { ...app, id, folder }
}

const logs = ['operations.log', 'output.log', 'overlay.ext4', 'report', 'vmm.log']

const table = [
  { from: 'Stopped', target: undefined, state: 'Stopped', files: logs },
  { from: 'Stopped', target: 'Stopped', state: 'Stopped', files: logs },
  { from: 'Stopped', target: 'Running', state: 'Running', files: ['memory', ...logs] },
  { from: 'Standby', target: undefined, state: 'Standby', files: ['memory', ...logs, 'standby'] },
  { from: 'Standby', target: 'Stopped', state: 'Stopped', files: logs },
  { from: 'Standby', target: 'Standby', state: 'Standby', files: ['memory', ...logs, 'standby'] },
  { from: 'Standby', target: 'Running', state: 'Running', files: ['memory', ...logs] },
  { from: 'Running', target: undefined, state: 'Running', files: ['memory', ...logs] },
  { from: 'Running', target: 'Stopped', state: 'Stopped', files: logs },
  { from: 'Running', target: 'Standby', state: 'Standby', files: ['memory', ...logs, 'standby'] }
] as const

for (const { from, target, state, files } of table) {
  t.test(`${from} forked to ${target ?? 'what it is'} gives an instance of its own in ${state}`, async (t) => {
    const { call, host, id, folder, waitFor } = await sourceIn(t, from)
    const before = (await call('GET', '/instances/web')).body
    const source = host.vm
    const { status, body } = await call('POST', '/instances/web/fork', { name: 'copy', ...(target === undefined ? {} : { target_state: target }), ...(from === 'Running' ? { from_running: true } : {}) })
    t.equal(status, 201)
    t.match((await waitFor('copy', state)).body, { state })
    const fork = (await call('GET', '/instances/copy')).body
    t.not(body['id'], id)
    for (const field of ['image', 'env', 'tags', 'vcpus', 'size', 'overlay_size', 'snapshot_policy', 'hypervisor']) t.same(fork[field], before[field], field)
    t.match(fork, { name: 'copy', state, source: { kind: 'instance', id, name: 'web' }, has_snapshot: state === 'Standby', exit_code: null, stopped_at: null })
    t.notHas(fork, 'exit_message')
    if (state !== 'Running') t.equal(fork['started_at'], null)
    t.same((await readdir(folder(fork['id']))).sort(), [...files].sort())
    const disk = await readFile(join(folder(fork['id']), 'overlay.ext4'))
    t.ok(disk.equals(await readFile(join(folder(id), 'overlay.ext4'))), 'the disk is a copy')
    t.ok((await stat(join(folder(fork['id']), 'overlay.ext4'))).blocks * 512 < 2 ** 23, 'and sparse')
    t.equal(host.held.size, 2)
    t.same((await call('GET', '/instances/web')).body, before, 'the source is what it was')
    if (from === 'Running') {
      t.equal(source.phase, 'running', 'the source is awake')
      t.same(source.wakes, [{}])
    }
    if (state === 'Running' && from !== 'Stopped') {
      t.match(host.vm.restoredFrom, { state: 'state of a guest asleep', memory: `memory of pid ${source.handle.pid}` })
      t.same(host.vm.wakes, [{ hostname: 'copy', newMachine: true }])
      t.equal(host.vm.spec.memory?.path, join(folder(fork['id']), 'memory'))
      t.equal(host.vm.spec.directory, folder(fork['id']))
      if (process.getuid?.() === 0) t.not(host.vm.spec.identity?.uid, source.spec.identity?.uid)
    }
  })
}

t.test('a fork in standby is woken as a machine of its own once, and its source\'s image stays', async (t) => {
  const { call, host } = await sourceIn(t, 'Standby')
  for (const name of ['one', 'two']) t.equal((await call('POST', '/instances/web/fork', { name })).status, 201)
  for (const name of ['one', 'two', 'web']) {
    t.match(await call('POST', `/instances/${name}/restore`), { status: 200, body: { state: 'Running' } })
    t.match(host.vm.restoredFrom?.memory, /^memory of pid \d+$/, 'nobody has run on it before')
    t.same(host.vm.wakes, [name === 'web' ? {} : { hostname: name, newMachine: true }])
  }
  await call('POST', '/instances/one/standby')
  await call('POST', '/instances/one/restore')
  t.same(host.vm.wakes, [{}])
})

t.test('what cannot be forked is refused', async (t) => {
  const { call, make, host, waitFor } = await sourceIn(t, 'Running')
  t.match(await call('POST', '/instances/web/fork', { name: 'copy' }), { status: 409, body: { code: 'invalid_state', message: /from_running/ }, headers: { 'x-should-retry': 'false' } })
  t.match(await call('POST', '/instances/web/fork', { name: 'web', from_running: true }), { status: 409, body: { code: 'name_conflict' } })
  t.match(await call('POST', '/instances/web/fork', { name: 'Bad' }), { status: 400, body: { code: 'invalid_request', message: /name/ } })
  t.match(await call('POST', '/instances/web/fork', { name: 'copy', target_state: 'Paused' }), { status: 400, body: { code: 'invalid_request', message: /target_state/ } })
  t.match(await call('POST', '/instances/nobody/fork', { name: 'copy' }), { status: 404 })
  await call('POST', '/instances/web/stop')
  t.match(await call('POST', '/instances/web/fork', { name: 'copy', target_state: 'Standby' }), { status: 400, body: { code: 'invalid_request', message: /^target_state: / } })
  host.behaviour = 'boot-only'
  await make('young')
  t.match(await call('POST', '/instances/young/fork', { name: 'copy', from_running: true }), { status: 409, body: { code: 'invalid_state', message: /Initializing/ } })
  host.behaviour = 'run'
  host.vm.begin()
  await waitFor('young', 'Running')
  host.makesImages = false
  await call('POST', '/instances/web/start')
  await waitFor('web', 'Running')
  t.match(await call('POST', '/instances/web/fork', { name: 'copy', from_running: true }), { status: 501, body: { code: 'not_supported' } })
})

t.test('a fork that is repeated under its key is not done twice', async (t) => {
  const { call } = await sourceIn(t, 'Standby')
  const answers = []
  for (let time = 0; time < 2; time++) answers.push(await call('POST', '/instances/web/fork', { name: 'copy' }, { 'idempotency-key': 'k' }))
  t.same(answers.map(({ status }) => status), [201, 201])
  t.equal(answers[0]?.body['id'], answers[1]?.body['id'])
})

t.test('many forks of one image at once are all different', async (t) => {
  const { call, host, dataDir } = await sourceIn(t, 'Standby')
  const answers = await Promise.all(Array.from({ length: 8 }, async (_, index) => await call('POST', '/instances/web/fork', { name: `copy-${index}`, target_state: 'Running' })))
  t.same(answers.map(({ status }) => status), Array.from({ length: 8 }, () => 201))
  t.equal(new Set(answers.map(({ body }) => body['id'])).size, 8)
  t.same(host.vms.slice(1).map(({ wakes }) => wakes[0]?.hostname).sort(), Array.from({ length: 8 }, (_, index) => `copy-${index}`))
  t.equal((await readdir(join(dataDir, 'instances'))).length, 9)
})

for (const step of ['track', 'sleep', 'changes', 'capture', 'restore'] as const) {
  t.test(`a fork that fails at "${step}" leaves its source running and nothing else`, async (t) => {
    const { call, host, dataDir, id, folder } = await sourceIn(t, 'Running')
    const source = host.vm
    host.failures.set(step, Object.assign(new Error('no space left on device'), { code: 'ENOSPC' }))
    const answer = await call('POST', '/instances/web/fork', { name: 'copy', from_running: true })
    t.ok(answer.status >= 400, String(answer.status))
    host.failures.clear()
    t.match((await call('GET', '/instances/web')).body, { state: 'Running' })
    t.equal(source.state.status, 'running')
    t.equal(source.phase, 'running')
    t.same(await readdir(join(dataDir, 'instances')), [id])
    t.same((await readdir(folder(id))).sort(), ['memory', ...logs])
    t.equal(host.held.size, 1)
    t.equal((await call('GET', '/instances/copy')).status, 404)
    t.match(await call('POST', '/instances/web/fork', { name: 'copy', from_running: true }), { status: 201, body: { state: 'Running' } })
  })
}

t.test('what the source has written to its disk while it was copied ahead is in the fork, and it is no longer noted then', async (t) => {
  const { call, folder, host, id } = await sourceIn(t, 'Running')
  const source = host.vm
  const path = join(folder(id), 'overlay.ext4')
  const written = Buffer.alloc(5000, 'w')
  host.onStep = async (step) => {
    // Of what is written while it sleeps nothing is told: only what is noted is copied again.
    if (step !== 'slept') return
    const disk = await open(path, 'r+')
    await disk.write(written, 0, written.length, 100_000)
    await disk.write(written, 0, written.length, 300_000)
    await disk.close()
    source.changes = [{ offset: 65_536, bytes: 65_536 }]
  }
  const { body } = await call('POST', '/instances/web/fork', { name: 'copy', from_running: true, target_state: 'Standby' })
  const copy = await readFile(join(folder(String(Object(body).id)), 'overlay.ext4'))
  t.ok(copy.subarray(100_000, 105_000).equals(written))
  t.notOk(copy.subarray(300_000, 305_000).equals(written))
  t.equal(source.tracked.size, 0)
})

const steps: readonly ImagingStep[] = ['flush', 'flushed', 'track', 'tracked', 'sleep', 'slept', 'changes', 'untrack', 'capture', 'captured', 'resume', 'wake', 'restore', 'restored']
for (const step of steps) {
  t.test(`a fork from a running source that was cut off at "${step}" leaves the source running and no half fork`, async (t) => {
    const before = await sourceIn(t, 'Running')
    const { host } = before
    const source = host.vm
    const after = await crashAt(t, before, step, async () => await before.call('POST', '/instances/web/fork', { name: 'copy', from_running: true }))
    t.match((await after.waitFor('web', 'Running')).body, { state: 'Running' })
    await until(async () => source.phase === 'running' && source.state.status === 'running')
    t.equal((await after.call('GET', '/instances/copy')).status, 404)
    t.same(await readdir(join(after.dataDir, 'instances')), [before.id])
    t.equal(host.held.size, 1)
    await until(async () => !(await readdir(join(after.dataDir, 'instances', before.id))).some((name) => name.startsWith('standby')))
    t.match(await after.call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby' } })
    const database = await openDatabase(after.dataDir)
    t.teardown(async () => { await database.destroy() })
    t.equal((await database('instances_instances')).length, 1)
  })
}

t.test('the disk of a source that runs is copied while its guest sleeps, also when its VMM falls silent at the beginning of the fork', async (t) => {
  const { call, host } = await sourceIn(t, 'Running')
  const { vm, images: { hold } } = host
  host.images.hold = async (digest, holder) => {
    vm.set({ status: 'hung', reason: 'no answer' })
    await hold(digest, holder)
  }
  const steps: ImagingStep[] = []
  host.onStep = (step, of) => { if (of === vm) steps.push(step) }
  t.match(await call('POST', '/instances/web/fork', { name: 'copy', from_running: true, target_state: 'Stopped' }), { status: 201, body: { state: 'Stopped' } })
  t.match(steps.filter((step) => ['slept', 'woken'].includes(step)), ['slept', 'woken'])
})

t.test('a source that ends at the beginning of its fork is told from one that cannot be forked', async (t) => {
  const { call, host, waitFor } = await sourceIn(t, 'Running')
  const { vm, images: { hold } } = host
  host.images.hold = async (digest, holder) => {
    await vm.exit()
    await waitFor('web', 'Stopped')
    await hold(digest, holder)
  }
  t.match(await call('POST', '/instances/web/fork', { name: 'copy', from_running: true }), { status: 409, body: { code: 'invalid_state', message: /ended meanwhile/ } })
  t.equal((await call('GET', '/instances/copy')).status, 404)
})
