// Standby and restore on a scripted host: what the guest is told, what stands on disk, and what a crash or a failure at each step leaves.
import { existsSync } from 'node:fs'
import { open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { InvalidState } from '../../../core/errors/common.ts'
import { startApp, type TestApp } from './app.ts'
import { until } from './crash.ts'

async function running (t: Test, fields: Record<string, unknown> = {}, config: Record<string, unknown> = {}): Promise<TestApp & { id: string, folder: string }> {
  const app = await startApp(t, { config })
  const id = await app.make('web', fields)
  await app.waitFor('web', 'Running')
  return { ...app, id, folder: join(app.dataDir, 'instances', id) }
}

t.test('standby puts the guest to sleep, captures it and ends its VMM; restore goes on with it under the same name', async (t) => {
  const { call, host, folder, waitFor } = await running(t)
  const { vm } = host
  const steps: string[] = []
  host.onStep = (step) => { steps.push(step) }
  const before = (await call('GET', '/instances/web')).body
  const { status, body } = await call('POST', '/instances/web/standby')
  t.equal(status, 200)
  t.match(body, { state: 'Standby', has_snapshot: true, started_at: before['started_at'], stopped_at: String, exit_code: null })
  t.notHas(body, 'exit_message')
  t.same(steps, ['sleep', 'slept', 'capture', 'captured', 'kill', 'killed'])
  t.equal(vm.state.status, 'gone')
  t.same((await readdir(folder)).sort(), ['memory', 'operations.log', 'output.log', 'overlay.ext4', 'report', 'standby', 'vmm.log'])
  t.equal((await stat(join(folder, 'standby'))).mode & 0o777, 0o700)
  t.match(await call('GET', '/instances/web/wait?state=Standby'), { status: 200, body: { state: 'Standby', timed_out: false } })
  t.match((await call('GET', '/instances/web/wait?state=Running')).body, { state: 'Standby', timed_out: false }, 'a wait for another state ends there')
  t.match((await call('GET', '/instances/web/stats')).body, { cpu_seconds: 0, memory_rss_bytes: 0 })

  const restored = await call('POST', '/instances/web/restore')
  t.match(restored, { status: 200, body: { state: 'Running', has_snapshot: false, stopped_at: null } })
  t.ok(String(restored.body['started_at']) >= String(before['started_at']))
  t.match(host.vm.restoredFrom, { state: 'state of a guest asleep', memory: `memory of pid ${vm.handle.pid}` })
  t.same(host.vm.spec.memory, { path: join(folder, 'memory'), sharing: 'shared' })
  t.same({ ...host.vm.spec, memory: undefined }, { ...vm.spec, memory: undefined }, 'it is the same VM')
  t.same(host.vm.wakes, [{}])
  t.equal(host.vm.workload, undefined, 'its program is not started again')
  await until(async () => !(await readdir(folder)).includes('restore.kept'))
  t.same((await readdir(folder)).sort(), ['memory', 'operations.log', 'output.log', 'overlay.ext4', 'report', 'vmm.log'])

  t.match(await call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby' } })
  t.match(await call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  t.match(await call('POST', '/instances/web/stop'), { status: 200, body: { state: 'Stopped', exit_code: 143, has_snapshot: false } })
  t.same((await readdir(folder)).sort(), ['operations.log', 'output.log', 'overlay.ext4', 'report', 'vmm.log'], 'the memory goes with the VM')
  t.match(await call('POST', '/instances/web/start'), { status: 200 })
  t.match((await waitFor('web', 'Running')).body, { state: 'Running' })
  t.match(await readFile(join(folder, 'operations.log'), 'utf8'), /standby: done in \d+ ms[^]*restore: done in \d+ ms/)
})

t.test('each state allows its calls only', async (t) => {
  const { call, host } = await running(t)
  const refused = async (verb: string, body?: object): Promise<void> => {
    const answer = await call('POST', `/instances/web/${verb}`, body)
    t.match(answer, { status: 409, body: { code: 'invalid_state', message: new RegExp(`^${verb}: `) }, headers: { 'x-should-retry': 'false' } }, verb)
  }
  await refused('restore')
  await refused('start')
  await call('POST', '/instances/web/standby')
  for (const verb of ['standby', 'start', 'stop']) await refused(verb)
  t.match(await call('GET', '/instances/web/stat?path=/'), { status: 409, body: { code: 'invalid_state' } })
  await call('POST', '/instances/web/restore')
  await call('POST', '/instances/web/stop')
  for (const verb of ['standby', 'restore', 'stop']) await refused(verb)
  host.behaviour = 'boot-only'
  await call('POST', '/instances/web/start')
  for (const verb of ['standby', 'restore', 'start']) await refused(verb)
})

t.test('of many standbys at once one does it and the others see its state', async (t) => {
  const { call, host } = await running(t)
  let captures = 0
  host.onStep = (step) => { if (step === 'capture') captures++ }
  const answers = await Promise.all(Array.from({ length: 5 }, async () => await call('POST', '/instances/web/standby')))
  t.same(answers.map(({ status }) => status).sort(), [200, 409, 409, 409, 409])
  t.equal(captures, 1)
})

t.test('the body of a standby is checked', async (t) => {
  const { call } = await running(t)
  const table: readonly [object, string, RegExp][] = [
    [{ compression: { enabled: true, algorithm: 'lz4', level: 10 } }, 'invalid_snapshot_policy', /^compression\.level: /],
    [{ compression: { enabled: 'yes' } }, 'invalid_request', /enabled/],
    [{ compression_delay: 'soon' }, 'invalid_request', /compression_delay/],
    [{ compress: true }, 'invalid_request', /compress/]
  ]
  for (const [body, code, message] of table) t.match(await call('POST', '/instances/web/standby', body), { status: 400, body: { code, message } }, JSON.stringify(body))
  t.match(await call('POST', '/instances/web/standby', { compression: { enabled: false, level: 19 }, compression_delay: '30s' }), { status: 200, body: { state: 'Standby' } })
})

t.test('a VM that cannot be captured is left alone', async (t) => {
  const { call, host } = await running(t)
  host.makesImages = false
  await call('POST', '/instances/web/stop')
  await call('POST', '/instances/web/start')
  t.match(await call('POST', '/instances/web/standby'), { status: 501, body: { code: 'not_supported', message: /qemu/ } })
  t.match((await call('GET', '/instances/web')).body, { state: 'Running' })
})

t.test('without memory files the memory is written at standby', async (t) => {
  const app = await startApp(t, { config: { memoryFiles: false } })
  const id = await app.make('web')
  await app.waitFor('web', 'Running')
  t.equal(app.host.vm.spec.memory, undefined)
  t.match(await app.call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby' } })
  const memory = await stat(join(app.dataDir, 'instances', id, 'memory'))
  if (process.getuid?.() === 0) t.equal(memory.uid, app.host.vm.spec.identity?.uid, 'it is the VM\'s')
  t.match(await app.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  t.match(await app.call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby' } })
})

t.test('a VM whose memory would not fit on the disk gets no memory file', async (t) => {
  const { make, host, dataDir } = await startApp(t, { config: { limits: { maxSize: '1000TB' } } })
  const id = await make('huge', { size: '900TB' })
  t.equal(host.vm.spec.memory, undefined)
  t.notOk((await readdir(join(dataDir, 'instances', id))).includes('memory'))
})

for (const step of ['sleep', 'capture', 'kill'] as const) {
  t.test(`a standby that fails at "${step}" leaves the instance running`, async (t) => {
    const { call, host, folder } = await running(t)
    host.failures.set(step, Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' }))
    t.match(await call('POST', '/instances/web/standby'), { status: 409, body: { code: 'insufficient_resources', message: /disk .* full/ } })
    host.failures.clear()
    t.match((await call('GET', '/instances/web')).body, { state: 'Running', has_snapshot: false })
    t.equal(host.vm.state.status, 'running')
    t.equal(host.vm.phase, 'running', 'its guest is awake')
    t.same((await readdir(folder)).sort(), ['memory', 'operations.log', 'output.log', 'overlay.ext4', 'report', 'vmm.log'])
    t.match(await call('POST', '/instances/web/standby'), { status: 200 })
  })
}

t.test('a VM that ends during its standby is Stopped', async (t) => {
  const { call, host } = await running(t)
  host.onStep = async (step, vm) => {
    if (step !== 'capture') return
    await vm?.exit({ exitCode: 3 })
    throw new Error('the connection to the VMM ended')
  }
  t.match(await call('POST', '/instances/web/standby'), { status: 409, body: { code: 'invalid_state', message: /has ended/ } })
  t.match((await call('GET', '/instances/web')).body, { state: 'Stopped', exit_code: 3 })
})

for (const memoryFiles of [true, false]) {
  t.test(`a VM ${memoryFiles ? 'with' : 'without'} a memory file that ends once it has been captured is Stopped, and the standby says so`, async (t) => {
    const { call, host, folder } = await running(t, {}, { memoryFiles })
    host.onStep = async (step, vm) => { if (step === 'captured') vm?.set({ status: 'gone' }) }
    t.match(await call('POST', '/instances/web/standby'), { status: 409, body: { code: 'invalid_state', message: /has ended/ } })
    t.match((await call('GET', '/instances/web')).body, { state: 'Stopped', has_snapshot: false, exit_message: String })
    t.same((await readdir(folder)).sort(), ['operations.log', 'output.log', 'overlay.ext4', 'report', 'vmm.log'])
    host.onStep = undefined
    t.match(await call('POST', '/instances/web/start'), { status: 200 })
  })
}

for (const way of ['cold', 'hot'] as const) {
  t.test(`an image whose taking cannot be brought to the disk by a ${way} restore is whole for the next one`, async (t) => {
    const { call, host, folder } = await running(t, { size: '256MB' }, { hotStandby: { enabled: way === 'hot' } })
    await call('POST', '/instances/web/standby')
    await synced(join(folder, 'standby', 'image.json'))
    await failSyncOnce(t, () => existsSync(join(folder, 'standby.taken')))
    t.match(await call('POST', '/instances/web/restore'), { status: 500 })
    t.match((await call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
    t.match(await call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
    t.match(host.vm.restoredFrom, { state: 'state of a guest asleep' })
  })
}

t.test('an image that was taken and could not be given back is given back by the next restore, unless a VM has run on it', async (t) => {
  for (const isUsed of [false, true]) {
    const { call, folder } = await running(t)
    await call('POST', '/instances/web/standby')
    await synced(join(folder, 'standby', 'image.json'))
    await rename(join(folder, 'standby'), join(folder, 'standby.taken'))
    if (isUsed) await writeFile(join(folder, 'memory'), 'gone on')
    t.match(await call('POST', '/instances/web/restore'), isUsed ? { status: 409, body: { code: 'image_used_up' } } : { status: 200, body: { state: 'Running' } })
  }
})

t.test('a restore that fails before the VM has run leaves the image as it was', async (t) => {
  const { call, host } = await running(t)
  await call('POST', '/instances/web/standby')
  host.failures.set('restore', new Error('QEMU ended'))
  t.match(await call('POST', '/instances/web/restore'), { status: 500, body: { code: 'internal_error' } })
  t.match((await call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true, state_error: null, restore_error: 'QEMU ended' })
  const waited = (await call('GET', '/instances/web/wait?state=Running')).body
  t.same(waited, { state: 'Standby', timed_out: false, restore_error: 'QEMU ended' }, 'an error of the state is one that Unknown has')
  host.failures.set('restore', InvalidState('its cpu is "a", the VM\'s is "b"'))
  t.match(await call('POST', '/instances/web/restore'), { status: 409, body: { code: 'restore_failed', message: /stays in Standby: its cpu/ } })
  t.match((await call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
  host.failures.clear()
  t.match(await call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
})

t.test('a restore that fails after the VM has run, and of whose image nothing was kept, makes the instance Stopped, and says so', async (t) => {
  const { call, host, folder } = await running(t)
  await call('POST', '/instances/web/standby')
  host.onStep = async (step) => {
    if (step !== 'restore') return
    await rm(join(folder, 'restore.kept'), { recursive: true })
    await writeFile(join(folder, 'memory'), 'gone on')
    throw new Error('the VMM crashed')
  }
  t.match(await call('POST', '/instances/web/restore'), { status: 409, body: { code: 'image_used_up', message: /the VMM crashed/ } })
  t.match((await call('GET', '/instances/web')).body, { state: 'Stopped', has_snapshot: false, exit_code: null, exit_message: /memory .* lost/ })
  t.same((await readdir(folder)).sort(), ['operations.log', 'output.log', 'overlay.ext4', 'report', 'vmm.log'])
  host.onStep = undefined
  t.match(await call('POST', '/instances/web/start'), { status: 200 })
})

t.test('a guest that cannot be woken is Initializing, and is tried again', async (t) => {
  const { call, host, waitFor } = await running(t)
  await call('POST', '/instances/web/standby')
  host.failures.set('wake', new Error('no clock'))
  t.match(await call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Initializing' } })
  host.failures.clear()
  host.vm.bus.emit('unlink')
  t.match((await waitFor('web', 'Running')).body, { state: 'Running' })
})

t.test('an instance in standby is deleted with everything', async (t) => {
  const { call, dataDir, host } = await running(t)
  await call('POST', '/instances/web/standby')
  t.equal((await call('DELETE', '/instances/web')).status, 204)
  t.same(await readdir(join(dataDir, 'instances')), [])
  t.equal(host.held.size, 0)
})

t.test('capabilities say that the driver makes memory images', async (t) => {
  const { call } = await startApp(t)
  t.match(Object((await call('GET', '/capabilities')).body).runtimes.find(({ name }: { name: string }) => name === 'qemu'), { features: ['snapshots', 'standby', 'fork'] })
})

t.test('an image outlives the server, and is synced by the next one when the first had no time for it', async (t) => {
  const before = await running(t)
  await before.call('POST', '/instances/web/standby')
  const manifest = join(before.folder, 'standby', 'image.json')
  await synced(manifest)
  await before.app.stop()
  const stored = JSON.parse(await readFile(manifest, 'utf8'))
  await writeFile(manifest, JSON.stringify({ ...stored, bootId: (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim() }))
  const after = await startApp(t, { host: before.host, dataDir: before.dataDir })
  t.match((await after.call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
  await synced(manifest)
  t.match(await after.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
})

t.test('an image that was not on disk when the host went down is not believed', async (t) => {
  const before = await running(t)
  await before.call('POST', '/instances/web/standby')
  const manifest = join(before.folder, 'standby', 'image.json')
  await synced(manifest)
  await before.app.stop()
  await writeFile(manifest, JSON.stringify({ ...JSON.parse(await readFile(manifest, 'utf8')), bootId: 'another' }))
  const after = await startApp(t, { host: before.host, dataDir: before.dataDir })
  t.match((await after.call('GET', '/instances/web')).body, { state: 'Stopped', has_snapshot: false, exit_message: /host went down/ })
  t.notOk((await readdir(before.folder)).some((name) => name.startsWith('standby') || name === 'memory'))
})

/** The server syncs an image behind its answer, and writes so into its manifest. */
async function synced (manifest: string): Promise<void> {
  await until(async () => JSON.parse(await readFile(manifest, 'utf8')).bootId === null)
}

/** The first sync under that condition fails, as on a disk with faults. */
async function failSyncOnce (t: Test, when: () => boolean): Promise<void> {
  const handle = await open('/dev/null')
  const prototype: { sync (): Promise<void> } = Object.getPrototypeOf(handle)
  await handle.close()
  const { sync } = prototype
  const restore = (): void => { prototype.sync = sync }
  t.teardown(restore)
  prototype.sync = async function (this: unknown) {
    if (!when()) return await Reflect.apply(sync, this, [])
    restore()
    throw Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO' })
  }
}
