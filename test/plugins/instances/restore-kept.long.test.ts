// A VM that ends right after its restore: disk and memory are as before, the instance says why, and the next restore goes on from them.
import { appendFile, mkdir, readdir, readFile, statfs, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { noteRestored } from '../../../core/data/restored.ts'
import { startApp, type StartOptions, type TestApp } from './app.ts'
import { LiveInstance } from '../../../plugins/instances/model/live-instance.ts'
import { failOnce } from '../../helpers/fail-once.ts'
import { withoutMounts } from '../../helpers/rights.ts'
import { smallDisk } from '../../helpers/small-disk.ts'
import { crashAt, until } from './crash.ts'
import { atChange, crashPoints, failingOnce } from './crash-points.ts'
import { ScriptedHost } from './scripted.ts'

const RESTING = ['memory', 'operations.log', 'output.log', 'overlay.ext4', 'report', 'standby', 'vmm.log']

interface Resting extends TestApp { readonly id: string, readonly folder: string }

async function resting (t: Test, body?: object, options: StartOptions = {}): Promise<Resting> {
  const app = await startApp(t, options)
  const id = await app.make('web')
  await app.waitFor('web', 'Running')
  const folder = join(app.dataDir, 'instances', id)
  await appendFile(join(folder, 'overlay.ext4'), 'first')
  await app.call('POST', '/instances/web/standby', body)
  return { ...app, id, folder }
}

const contentsOf = async (folder: string): Promise<string[]> => await Promise.all(['memory', 'overlay.ext4'].map(async (name) => (await readFile(join(folder, name))).subarray(-40).toString()))

const SINCE = 'first, written since'

const endOfDisk = async (folder: string): Promise<string> => (await readFile(join(folder, 'overlay.ext4'))).subarray(-SINCE.length).toString()

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
  t.match((await call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true, state_error: null, restore_error: why })
  t.match((await call('GET', '/instances/web/wait?state=Running')).body, { state: 'Standby', timed_out: false, restore_error: why })
  t.same(await contentsOf(folder), before)
  t.same((await readdir(folder)).sort(), RESTING)
  t.match(await call('POST', '/instances/web/start'), { status: 409, body: { message: /current state: Standby: its VM ended/ } })
  await app.app.stop()
  host.onStep = undefined
  const later = await startApp(t, { host, dataDir: app.dataDir })
  t.match((await later.call('GET', '/instances/web')).body, { state: 'Standby', state_error: null, restore_error: why }, 'it is known to the next server, too')
  t.match(await later.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running', state_error: null, restore_error: undefined } })
  t.match(host.vm.restoredFrom, { state: 'state of a guest asleep' })
  t.equal(host.vm.restoredFrom?.memory, before[0])
  t.match(await later.call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby', state_error: null, restore_error: undefined } })
})

t.test('a VM that ends after its restore was answered, and before it has lived for a second', async (t) => {
  const app = await resting(t)
  const before = await contentsOf(app.folder)
  for (let turn = 0; turn < 2; turn++) {
    t.match(await app.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
    await die(app)
    t.match((await app.waitFor('web', 'Standby')).body, { state: 'Standby' })
    t.match((await app.call('GET', '/instances/web')).body, { state_error: null, restore_error: /its VM ended within a second/ })
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

t.test('an instance whose disk has no room for a second copy is restored without one, and nothing of it stays', { skip: withoutMounts }, async (t) => {
  const disk = await smallDisk(t, 48)
  const app = await resting(t, undefined, { dataDir: join(disk, 'data') })
  const free = async (): Promise<number> => {
    const { bavail, bsize } = await statfs(disk)
    return bavail * bsize
  }
  await writeFile(join(app.folder, 'overlay.ext4'), Buffer.alloc(Math.ceil(await free() * 0.6), 'x'))
  const before = await free()
  t.match(await app.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  t.notOk((await readdir(app.folder)).some((name) => name.startsWith('restore.')))
  t.ok(await free() > before - 2 ** 20, 'and takes no room')
  await app.app.stop()
})

t.test('a copy that cannot be made for another reason fails the restore, which leaves nothing of it', async (t) => {
  const app = await resting(t)
  // It is no file that could be copied.
  await mkdir(join(app.folder, 'volumes/folder'), { recursive: true })
  t.equal((await app.call('POST', '/instances/web/restore')).status, 500)
  t.same((await readdir(app.folder)).sort(), [...RESTING, 'volumes'].sort())
  t.match((await app.call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
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
  t.match((await next.call('GET', '/instances/web')).body, { state_error: null, restore_error: /within a second/ })
  t.same(await contentsOf(folder), before)
  t.same((await readdir(folder)).sort(), RESTING)
  t.match(await next.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
})

t.test('a server that dies at any step of a restore, and of putting back what was kept, leaves the instance in standby as before', async (t) => {
  const app = await resting(t)
  const before = await contentsOf(app.folder)
  const points = await crashPoints(t, app.dataDir, async () => {
    t.match(await app.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
    await die(app)
    await app.waitFor('web', 'Standby')
  })
  t.ok(points.some(({ step }) => step.includes('rename restore.kept to replacement')), 'what was kept was put back')
  for (const { step, dataDir } of points) {
    await t.test(`at ${step}`, async (t) => {
      const after = await startApp(t, { host: new ScriptedHost(), dataDir })
      const folder = join(dataDir, 'instances', app.id)
      t.match((await after.waitFor('web', 'Standby')).body, { state: 'Standby' })
      t.match((await after.call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
      t.notHas((await after.call('GET', '/instances/web')).body, 'exit_message')
      t.same(await contentsOf(folder), before)
      t.match(await after.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
      t.equal(after.host.vm.restoredFrom?.memory, before[0])
      await after.app.stop()
    })
  }
})

const faults: ReadonlyArray<readonly [string, (t: Test, app: Resting, call: () => Promise<void>) => Promise<void>]> = [
  ['that cannot be stored', async (t, _app, call) => {
    failOnce(t, LiveInstance.prototype, 'save', { done: false })
    await call()
  }],
  ['whose files cannot be named', async (_t, { dataDir }, call) => { await failingOnce(dataDir, 'rename restore.kept to replacement', call) }],
  ['whose files cannot be moved', async (_t, { dataDir }, call) => { await failingOnce(dataDir, 'rename overlay.ext4 to overlay.ext4', call) }]
]

for (const [what, fails] of faults) {
  t.test(`a put-back ${what} keeps the instance from everything but a change or a delete, and is done a moment later`, async (t) => {
    const app = await resting(t)
    const before = await contentsOf(app.folder)
    await app.call('POST', '/instances/web/restore')
    await fails(t, app, async () => {
      await die(app)
      await app.waitFor('web', 'Unknown')
    })
    t.match((await app.call('GET', '/instances/web')).body, { state: 'Unknown', state_error: /tried again/ })
    for (const verb of ['start', 'restore']) t.match(await app.call('POST', `/instances/web/${verb}`), { status: 409, body: { code: 'invalid_state' } })
    t.equal((await app.call('PATCH', '/instances/web', { auto_standby: { idle_timeout: '5m' } })).status, 200)
    await until(async () => (await app.call('GET', '/instances/web')).body['state'] === 'Standby')
    t.match((await app.call('GET', '/instances/web')).body, { has_snapshot: true, restore_error: /within a second/, auto_standby: { idle_timeout: '300s' } })
    t.same(await contentsOf(app.folder), before)
    t.same((await readdir(app.folder)).sort(), RESTING)
    await app.app.stop()
    const later = await startApp(t, { host: app.host, dataDir: app.dataDir })
    t.match(await later.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
    t.equal(app.host.vm.restoredFrom?.memory, before[0])
  })
}

t.test('an instance that is changed while what was kept is put back is in standby, and has the change', async (t) => {
  const app = await resting(t)
  const before = await contentsOf(app.folder)
  await app.call('POST', '/instances/web/restore')
  await atChange(app.dataDir, 'rename restore.kept to replacement', async () => {
    t.equal((await app.call('PATCH', '/instances/web', { auto_standby: { idle_timeout: '5m' } })).status, 200)
  }, async () => {
    await die(app)
    await until(async () => ['Standby', 'Stopped'].includes(String((await app.call('GET', '/instances/web')).body['state'])))
  })
  t.match((await app.call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true, auto_standby: { idle_timeout: '300s' } })
  t.same(await contentsOf(app.folder), before)
  await app.app.stop()
  const later = await startApp(t, { host: app.host, dataDir: app.dataDir })
  t.match((await later.call('GET', '/instances/web')).body, { state: 'Standby', auto_standby: { idle_timeout: '300s' } })
  t.match(await later.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  t.equal(app.host.vm.restoredFrom?.memory, before[0])
})

t.test('a restore whose VM has run and does not come up, and whose put-back cannot be stored, is in standby as before a moment later', async (t) => {
  const app = await resting(t)
  const before = await contentsOf(app.folder)
  app.host.onStep = async (step) => {
    if (step !== 'restored') return
    await appendFile(join(app.folder, 'memory'), ', written since')
    await appendFile(join(app.folder, 'overlay.ext4'), ', written since')
    failOnce(t, LiveInstance.prototype, 'save', { done: false })
    throw new Error('the VMM crashed')
  }
  t.equal((await app.call('POST', '/instances/web/restore')).status, 503)
  app.host.onStep = undefined
  t.match((await app.call('GET', '/instances/web')).body, { state: 'Unknown', state_error: /tried again/ })
  await until(async () => (await app.call('GET', '/instances/web')).body['state'] === 'Standby')
  t.match((await app.call('GET', '/instances/web')).body, { has_snapshot: true, restore_error: /the VMM crashed/ })
  t.same(await contentsOf(app.folder), before)
  t.match(await app.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  t.equal(app.host.vm.restoredFrom?.memory, before[0])
})

t.test('an instance that is deleted before its put-back could be done is gone, and stays so', async (t) => {
  const app = await resting(t)
  await app.call('POST', '/instances/web/restore')
  failOnce(t, LiveInstance.prototype, 'save', { done: false })
  await die(app)
  await app.waitFor('web', 'Unknown')
  t.equal((await app.call('DELETE', '/instances/web')).status, 204)
  await new Promise((resolve) => setTimeout(resolve, 1500))
  t.same(await readdir(join(app.dataDir, 'instances')), [])
  t.equal((await app.call('GET', '/instances/web')).status, 404)
})

/** A server that has died while it woke a guest, and whose VM is gone at the start of the next one. */
async function lostUnseen (t: Test, change: (folder: string) => Promise<void>): Promise<{ readonly next: TestApp, readonly folder: string }> {
  const app = await resting(t)
  let folder = ''
  const next = await crashAt(t, app, 'wake', async () => await app.call('POST', '/instances/web/restore'), async (t, options) => {
    folder = join(options.dataDir ?? '', 'instances', app.id)
    await change(folder)
    app.host.vm.state = { status: 'gone' }
    return await startApp(t, options)
  })
  return { next, folder }
}

t.test('a VM that has lived on without a server, and ended before the next one, is Stopped with the disk that it has written', async (t) => {
  for (const written of ['overlay.ext4', 'output.log'] as const) {
    const { next, folder } = await lostUnseen(t, async (folder) => {
      await appendFile(join(folder, 'overlay.ext4'), ', written since')
      const [then, later] = [Date.now() / 1000, Date.now() / 1000 + 3600]
      for (const name of ['overlay.ext4', 'output.log', 'vmm.log']) await utimes(join(folder, name), then, name === written ? later : then)
    })
    t.match((await next.call('GET', '/instances/web')).body, { state: 'Stopped', has_snapshot: false, state_error: null }, written)
    t.equal(await endOfDisk(folder), SINCE)
    t.same((await readdir(folder)).sort(), ['operations.log', 'output.log', 'overlay.ext4', 'report', 'vmm.log'])
  }
})

const ends: ReadonlyArray<readonly [string, { readonly paused?: boolean, readonly waits?: boolean, readonly writes?: boolean, readonly state: 'Stopped' | 'Standby' }]> = [
  ['that ran all the while without writing is Stopped', { state: 'Stopped' }],
  ['that did not run until then, and has written since, is Stopped with the disk that it has written', { paused: true, writes: true, state: 'Stopped' }],
  ['that did not run until then, and has lived for longer than a second since without writing, is Stopped', { paused: true, waits: true, state: 'Stopped' }],
  ['that did not run until then, and ends at once, is in standby as before', { paused: true, state: 'Standby' }]
]

for (const [what, { paused = false, waits = false, writes = false, state }] of ends) {
  t.test(`a VM with a mute guest, taken over seconds after its restore, ${what}`, async (t) => {
    const app = await resting(t)
    const { host, folder, dataDir } = app
    host.onStep = async (step) => { if (step === 'wake') await new Promise<never>(() => {}) }
    t.match(await app.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Initializing' } })
    await app.app.stop()
    t.ok((await readdir(folder)).includes('restore.kept'))
    const before = Date.now() / 1000 - 3600
    for (const name of ['overlay.ext4', 'output.log', 'vmm.log']) await utimes(join(folder, name), before, before)
    if (paused) host.vm.set({ status: 'paused' })
    const next = await startApp(t, { host, dataDir })
    t.match((await next.waitFor('web', 'Initializing')).body, { state: 'Initializing' })
    if (waits) await sleep(1500)
    if (writes) await appendFile(join(folder, 'overlay.ext4'), ', written since')
    host.vm.set({ status: 'gone' })
    await until(async () => ['Standby', 'Stopped'].includes(String((await next.call('GET', '/instances/web')).body['state'])))
    t.match((await next.call('GET', '/instances/web')).body, { state, has_snapshot: state === 'Standby', state_error: null })
    if (writes) t.equal(await endOfDisk(folder), SINCE)
    else t.match(await endOfDisk(folder), /first$/)
    t.notOk((await readdir(folder)).includes('restore.kept'))
  })
}

t.test('what was kept is not put back after the host went down, since it may not be on the disk, but for what a backup has brought', async (t) => {
  const another = async (folder: string): Promise<void> => {
    await appendFile(join(folder, 'overlay.ext4'), ', written since')
    const path = join(folder, 'restore.kept/standby/image.json')
    await writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(path, 'utf8')), bootId: 'another' }))
  }
  const { next, folder } = await lostUnseen(t, another)
  t.match((await next.call('GET', '/instances/web')).body, { state: 'Stopped', has_snapshot: false, state_error: null })
  t.equal(await endOfDisk(folder), SINCE)
  const brought = await lostUnseen(t, async (folder) => {
    await another(folder)
    await noteRestored(join(folder, '../..'), 'another')
  })
  t.match((await brought.next.waitFor('web', 'Standby')).body, { state: 'Standby' })
  t.match(await endOfDisk(brought.folder), /first$/)
})

t.test('what was kept is not put back either while somebody else is at work on the instance when the second is over', async (t) => {
  const app = await resting(t)
  const { call, folder } = app
  const { save } = LiveInstance.prototype
  t.teardown(() => { LiveInstance.prototype.save = save })
  t.match(await call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  LiveInstance.prototype.save = async function (this: LiveInstance, ...args: Parameters<typeof save>) {
    LiveInstance.prototype.save = save
    await sleep(2000)
    await Reflect.apply(save, this, args)
  }
  const update = call('PATCH', '/instances/web', { auto_standby: { idle_timeout: '5m' } })
  await sleep(1500)
  t.ok((await readdir(folder)).includes('restore.kept'))
  await die(app)
  t.match((await app.waitFor('web', 'Stopped')).body, { state: 'Stopped' })
  await update
  t.match((await call('GET', '/instances/web')).body, { state: 'Stopped', has_snapshot: false, state_error: null })
  t.equal(await endOfDisk(folder), SINCE)
})
