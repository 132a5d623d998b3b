// A VM that ends right after its restore: disk and memory are as before, the instance says why, and the next restore goes on from them.
import { appendFile, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startApp, type TestApp } from './app.ts'
import { crashAt, until } from './crash.ts'

const RESTING = ['memory', 'operations.log', 'output.log', 'overlay.ext4', 'report', 'standby', 'vmm.log']

interface Resting extends TestApp { readonly id: string, readonly folder: string }

async function resting (t: Test, body?: object): Promise<Resting> {
  const app = await startApp(t)
  const id = await app.make('web')
  await app.waitFor('web', 'Running')
  const folder = join(app.dataDir, 'instances', id)
  await appendFile(join(folder, 'overlay.ext4'), 'first')
  await app.call('POST', '/instances/web/standby', body)
  return { ...app, id, folder }
}

const contentsOf = async (folder: string): Promise<string[]> => await Promise.all(['memory', 'overlay.ext4'].map(async (name) => (await readFile(join(folder, name))).subarray(-40).toString()))

/** The VM writes disk and memory and is gone. */
async function die ({ host, folder }: Resting): Promise<void> {
  await appendFile(join(folder, 'overlay.ext4'), ', written since')
  await appendFile(join(host.vm.spec.files.vmm), 'Kernel panic - not syncing\n')
  host.vm.set({ status: 'gone' })
}

t.test('a VM that ends before its guest is awake: the restore fails and says why, and the next one goes on from the same', async (t) => {
  const app = await resting(t)
  const { call, host, folder } = app
  const before = await contentsOf(folder)
  host.onStep = async (step) => { if (step === 'wake') await die(app) }
  const why = /its VM ended within a second of its restore \(Kernel panic - not syncing\)/
  t.match(await call('POST', '/instances/web/restore'), { status: 409, body: { code: 'restore_failed', message: why } })
  t.match((await call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true, state_error: why })
  t.same(await contentsOf(folder), before)
  t.same((await readdir(folder)).sort(), RESTING)
  t.match(await call('POST', '/instances/web/start'), { status: 409, body: { message: /current state: Standby: its VM ended/ } })
  await app.app.stop()
  host.onStep = undefined
  const later = await startApp(t, { host, dataDir: app.dataDir })
  t.match((await later.call('GET', '/instances/web')).body, { state: 'Standby', state_error: why }, 'it is known to the next server, too')
  t.match(await later.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running', state_error: null } })
  t.match(host.vm.restoredFrom, { state: 'state of a guest asleep' })
  t.equal(host.vm.restoredFrom?.memory, before[0])
  t.match(await later.call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby', state_error: null } })
})

t.test('a VM that ends after its restore was answered, and before it has lived for a second', async (t) => {
  const app = await resting(t)
  const before = await contentsOf(app.folder)
  for (let turn = 0; turn < 2; turn++) {
    t.match(await app.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
    await die(app)
    t.match((await app.waitFor('web', 'Standby')).body, { state: 'Standby' })
    t.match((await app.call('GET', '/instances/web')).body, { state_error: /its VM ended within a second/ })
    t.same(await contentsOf(app.folder), before)
    t.same((await readdir(app.folder)).sort(), RESTING)
  }
})

t.test('a program that ends right after its restore, and an instance that is stopped, are Stopped', async (t) => {
  for (const end of ['exit', 'stop', 'delete'] as const) {
    const { call, host, waitFor, folder } = await resting(t)
    await call('POST', '/instances/web/restore')
    if (end === 'exit') await host.vm.exit({ exitCode: 7 })
    if (end === 'stop') await call('POST', '/instances/web/stop')
    if (end === 'delete') {
      t.equal((await call('DELETE', '/instances/web')).status, 204)
      continue
    }
    await waitFor('web', 'Stopped')
    t.match((await call('GET', '/instances/web')).body, { state: 'Stopped', has_snapshot: false, state_error: null, exit_code: end === 'exit' ? 7 : 143 })
    t.same((await readdir(folder)).sort(), ['operations.log', 'output.log', 'overlay.ext4', 'report', 'vmm.log'])
  }
})

t.test('what was kept goes once the VM has lived for a second, and a standby before that goes on from the new memory', async (t) => {
  const { call, host, folder } = await resting(t)
  await call('POST', '/instances/web/restore')
  t.ok((await readdir(folder)).includes('restore.kept'))
  t.match(await call('POST', '/instances/web/standby'), { status: 200 })
  t.same((await readdir(folder)).sort(), RESTING)
  await call('POST', '/instances/web/restore')
  t.match(host.vm.restoredFrom?.memory, /gone on/)
  await until(async () => !(await readdir(folder)).some((name) => /restore|standby/.test(name)))
})

t.test('a server that dies in that second leaves an instance that runs, or one that is in standby as before', async (t) => {
  const alive = await resting(t)
  const after = await crashAt(t, alive, 'wake', async () => await alive.call('POST', '/instances/web/restore'))
  t.match((await after.waitFor('web', 'Running')).body, { state: 'Running' })
  await until(async () => !(await readdir(join(after.dataDir, 'instances', alive.id))).some((name) => /restore|standby/.test(name)))

  const dead = await resting(t)
  const before = await contentsOf(dead.folder)
  const next = await crashAt(t, dead, 'wake', async () => await dead.call('POST', '/instances/web/restore'), async (t, options) => {
    dead.host.vm.state = { status: 'gone' }
    return await startApp(t, options)
  })
  const folder = join(next.dataDir, 'instances', dead.id)
  t.match((await next.waitFor('web', 'Standby')).body, { state: 'Standby' })
  t.match((await next.call('GET', '/instances/web')).body, { state_error: /within a second/ })
  t.same(await contentsOf(folder), before)
  t.same((await readdir(folder)).sort(), RESTING)
  t.match(await next.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
})
