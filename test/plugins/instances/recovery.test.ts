// What a server finds at its start: VMs that run are taken over, those that ended are settled, half-made instances are removed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openDatabase } from './database.ts'
import { startApp, temporaryData, type StartOptions, type TestApp } from './app.ts'
import { ScriptedHost } from './scripted.ts'

/** Stops the server and starts another one on the same data and the same host, after `meanwhile`. */
async function restart (t: Test, before: TestApp, meanwhile: () => Promise<unknown> | void = () => {}, options: StartOptions = {}): Promise<TestApp> {
  await before.app.stop()
  await meanwhile()
  return await startApp(t, { host: before.host, dataDir: before.dataDir, ...options })
}

t.test('running VMs are taken over, with their state and start time, and their guests are asked nothing twice', async (t) => {
  const before = await startApp(t)
  await before.make('web', { env: { A: 'b' } })
  await before.waitFor('web', 'Running')
  const { body } = await before.call('GET', '/instances/web')
  const first = before.host.vm.workload
  before.host.vm.workload = undefined
  const after = await restart(t, before)
  t.same((await after.call('GET', '/instances/web')).body, body)
  t.equal(after.host.vms.length, 1)
  t.equal(after.host.vm.state.status, 'running')
  await after.waitFor('web', 'Running')
  t.equal(after.host.vm.workload, undefined)
  t.ok(first)
  t.match(await after.call('POST', '/instances/web/stop'), { status: 200, body: { exit_code: 143 } })
})

t.test('a guest that never got its workload gets it from the next server', async (t) => {
  const before = await startApp(t)
  await before.make('web')
  await before.waitFor('web', 'Running')
  const { vm } = before.host
  // As if the server had been killed between launch and `run`.
  const after = await restart(t, before, async () => {
    const database = await openDatabase(before.dataDir)
    await database('instances_instances').update({ running_at: null })
    await database.destroy()
    vm.phase = 'waiting'
    vm.workload = undefined
  })
  t.equal((await after.waitFor('web', 'Running')).body['state'], 'Running')
  t.same(vm.workload?.argv, ['/bin/tool', 'serve'])
})

t.test('a program that ended while no server was there shows its exit code and when it ended', async (t) => {
  const before = await startApp(t)
  await before.make('web')
  await before.waitFor('web', 'Running')
  let ended = 0
  const after = await restart(t, before, async () => {
    await before.host.vm.exit({ exitCode: 137, signal: 9, oom: true })
    ended = (await stat(before.host.vm.spec.files.report)).mtimeMs
  })
  const { body } = await after.call('GET', '/instances/web')
  t.match(body, { state: 'Stopped', exit_code: 137, exit_message: 'killed by signal 9 (killed) - OOM' })
  t.ok(Math.abs(Date.parse(String(body['stopped_at'])) - ended) < 2)
  t.equal((await after.call('POST', '/instances/web/start')).status, 200)
})

t.test('stopped instances stay as they are', async (t) => {
  const before = await startApp(t)
  await before.make('web')
  await before.waitFor('web', 'Running')
  await before.host.vm.exit({ exitCode: 3 })
  await before.waitFor('web', 'Stopped')
  const { body } = await before.call('GET', '/instances/web')
  const after = await restart(t, before)
  t.same((await after.call('GET', '/instances/web')).body, body)
})

t.test('with stopInstancesOnExit the VMs end with the server', async (t) => {
  const before = await startApp(t, { server: { stopInstancesOnExit: true } })
  await before.make('web')
  await before.waitFor('web', 'Running')
  const after = await restart(t, before)
  t.match((await after.call('GET', '/instances/web')).body, { state: 'Stopped', exit_code: 143 })
})

t.test('a VM that cannot be ended with the server keeps no other from its orderly end', async (t) => {
  const before = await startApp(t, { server: { stopInstancesOnExit: true } })
  for (const name of ['stuck', 'web']) {
    await before.make(name)
    await before.waitFor(name, 'Running')
  }
  const [stuck, web] = before.host.vms
  if (stuck === undefined || web === undefined) throw new Error('two VMs were launched')
  before.host.onStep = async (step, vm) => {
    if (vm === stuck && ['shutdown', 'kill'].includes(step)) throw new Error('it is stuck')
    if (vm === web && step === 'shutdown') await sleep(300)
  }
  await before.app.stop()
  t.same([stuck.state.status, web.state.status], ['running', 'gone'])
  before.host.onStep = undefined
  const after = await startApp(t, { host: before.host, dataDir: before.dataDir })
  t.match((await after.call('GET', '/instances/web')).body, { state: 'Stopped', exit_code: 143 })
})

t.test('without it they are let go', async (t) => {
  const before = await startApp(t)
  await before.make('web')
  await before.waitFor('web', 'Running')
  await before.app.stop()
  t.equal(before.host.vm.state.status, 'running')
  t.equal(before.host.vm.released, 1)
})

for (const step of ['row', 'folder', 'files', 'hold', 'launched', 'deleting', 'deleting, folder gone'] as const) {
  t.test(`an instance that was cut off at "${step}" is gone after the start`, async (t) => {
    const host = new ScriptedHost()
    const before = await startApp(t, { host })
    const id = await before.make('web')
    await before.waitFor('web', 'Running')
    const folder = join(before.dataDir, 'instances', id)
    const after = await restart(t, before, async () => {
      const database = await openDatabase(before.dataDir)
      const deleting = step.startsWith('deleting')
      await database('instances_instances').update(deleting ? { status: 'deleting' } : { status: 'creating', handle: null, started_at: null })
      await database.destroy()
      if (step === 'row' || step === 'deleting, folder gone') await rename(folder, join(before.dataDir, 'instances', `.trash-${id}`))
      if (step === 'folder') {
        const { rm } = await import('node:fs/promises')
        await rm(folder, { recursive: true })
        await mkdir(folder)
      }
      if (step === 'row' || step === 'folder' || step === 'files') host.held.clear()
    })
    t.equal((await after.call('GET', '/instances/web')).status, 404)
    t.same(await readdir(join(after.dataDir, 'instances')), [])
    t.equal(host.held.size, 0)
    if (step.startsWith('deleting')) t.equal(host.vm.state.status, 'gone')
    await after.make('web')
  })
}

t.test('a VMM whose handle was never stored is ended, wherever in its folder it works; others are left alone', async (t) => {
  const before = await startApp(t)
  const ids = { creating: await before.make('creating'), stopped: await before.make('stopped'), running: await before.make('running') }
  for (const name of Object.keys(ids)) await before.waitFor(name, 'Running')
  await before.app.stop()
  const orphan = async (id: string, sub = '') => {
    const cwd = join(before.dataDir, 'instances', id, sub)
    await mkdir(cwd, { recursive: true })
    const child = spawn('sleep', ['600'], { cwd, detached: true, stdio: 'ignore' })
    await once(child, 'spawn')
    t.teardown(() => { child.kill('SIGKILL') })
    return child
  }
  const doomed = [await orphan(ids.creating, 'qemu'), await orphan(ids.stopped)]
  const spared = await orphan(ids.running, 'qemu')
  const ends = doomed.map(async (child) => await once(child, 'exit'))
  const database = await openDatabase(before.dataDir)
  await database('instances_instances').where({ name: 'creating' }).update({ status: 'creating', handle: null })
  await database('instances_instances').where({ name: 'stopped' }).update({ handle: null, stopped_at: 1, exit_code: 0, exit_message: 'success' })
  await database.destroy()
  const after = await startApp(t, { host: before.host, dataDir: before.dataDir })
  for (const end of ends) t.same(await end, [null, 'SIGKILL'])
  t.equal(spared.exitCode, null)
  t.equal(spared.signalCode, null)
  t.equal((await after.call('GET', '/instances/creating')).status, 404)
  t.equal((await after.call('GET', '/instances/stopped')).body['state'], 'Stopped')
  t.equal((await after.call('GET', '/instances/running')).body['state'], 'Running')
})

t.test('a folder that no row knows is left alone and reported', async (t) => {
  const dataDir = join(await temporaryData(t), 'data')
  await mkdir(join(dataDir, 'instances', 'strange'), { recursive: true })
  await writeFile(join(dataDir, 'instances', 'strange', 'overlay.ext4'), 'precious')
  const lines: Record<string, unknown>[] = []
  await startApp(t, { dataDir, lines })
  t.same(await readdir(join(dataDir, 'instances')), ['strange'])
  t.ok(lines.some(({ strange }) => Array.isArray(strange) && strange.includes('strange')))
})

t.test('an instance whose VM cannot be taken over is Unknown, says why, and can be deleted', async (t) => {
  const before = await startApp(t)
  await before.make('web')
  await before.waitFor('web', 'Running')
  const after = await restart(t, before, () => { before.host.attachError = new Error('its socket is gone') })
  t.match((await after.call('GET', '/instances/web')).body, { state: 'Unknown', state_error: /could not be taken over/ })
  t.equal((await after.call('DELETE', '/instances/web')).status, 204)
  t.same(await readdir(join(after.dataDir, 'instances')), [])
})

t.test('an instance whose VM of a restore that was cut off cannot be looked at is Unknown and keeps that VM, connected, until it is deleted; all others are there', async (t) => {
  const host = new ScriptedHost()
  const network = host.connect()
  const before = await startApp(t, { host })
  const id = await before.make('web')
  await before.make('other')
  for (const name of ['web', 'other']) await before.waitFor(name, 'Running')
  await before.call('POST', '/instances/other/stop')
  t.match(await before.call('POST', '/instances/web/standby'), { status: 200 })
  const folder = join(before.dataDir, 'instances', id)
  const vm = spawn('sleep', ['600'], { cwd: folder, detached: true, stdio: 'ignore' })
  t.teardown(() => { vm.kill('SIGKILL') })
  const ended = once(vm, 'exit')
  const after = await restart(t, before, async () => {
    network.ports.set(id, { uid: undefined, limits: { vcpus: 1 }, egress: 'none' })
    await rename(join(folder, 'standby'), join(folder, 'standby.taken'))
    await writeFile(join(folder, 'standby.taken', 'vm.json'), '{"driver":"qemu"}')
    before.host.attachError = new Error('its socket is gone')
  })
  t.match((await after.call('GET', '/instances/web')).body, { state: 'Unknown', state_error: /could not be taken over: its socket is gone/ })
  t.match((await after.call('GET', '/instances/other')).body, { state: 'Stopped' })
  t.same([vm.exitCode, vm.signalCode, network.ports.has(id)], [null, null, true])
  t.equal((await after.call('DELETE', '/instances/web')).status, 204)
  t.same(await ended, [null, 'SIGKILL'])
  t.notOk(network.ports.has(id))
})

t.test('a rotation that was cut off between rename and switch is completed', async (t) => {
  const before = await startApp(t)
  await before.make('web')
  await before.waitFor('web', 'Running')
  const { output } = before.host.vm.spec.files
  const after = await restart(t, before, async () => {
    await before.host.vm.print('old\n')
    await rename(output, `${output}.1`)
  })
  await after.waitFor('web', 'Running')
  t.same(after.host.vm.rotations, [join('output', output)])
  t.equal((await stat(output)).size, 0)
})
