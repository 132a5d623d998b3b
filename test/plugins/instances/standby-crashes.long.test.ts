// The server dies between any two steps of a standby or restore: the next one finds the data folder, and the VM, as they were at that moment.
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startApp, type StartOptions, type TestApp } from './app.ts'
import { crashAt, until } from './crash.ts'
import { ScriptedHost, type ImagingStep } from './scripted.ts'

async function running (t: Test, options: StartOptions = {}): Promise<TestApp & { id: string }> {
  const app = await startApp(t, { host: new ScriptedHost(), ...options })
  const id = await app.make('web')
  await app.waitFor('web', 'Running')
  return { ...app, id }
}

const standbys: readonly [ImagingStep, string][] = [
  ['sleep', 'Running'], ['slept', 'Running'], ['capture', 'Running'], ['captured', 'Running'], ['kill', 'Standby'], ['killed', 'Standby']
]
for (const [step, state] of standbys) {
  t.test(`a standby that was cut off at "${step}" is ${state === 'Running' ? 'undone' : 'finished'}`, async (t) => {
    const before = await running(t)
    const { vm } = before.host
    const after = await crashAt(t, before, step, async () => await before.call('POST', '/instances/web/standby'))
    const folder = join(after.dataDir, 'instances', before.id)
    t.match((await after.waitFor('web', state)).body, { state })
    t.match((await after.call('GET', '/instances/web')).body, { state, has_snapshot: state === 'Standby' })
    if (state === 'Running') {
      t.equal(vm.state.status, 'running')
      t.equal(vm.phase, 'running', 'the guest is awake')
      await until(async () => !(await readdir(folder)).some((name) => name.startsWith('standby')))
      t.match(await after.call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby' } })
    } else {
      t.equal(vm.state.status, 'gone')
    }
    t.same((await readdir(folder)).filter((name) => name.startsWith('standby')), ['standby'])
    t.match(await after.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
    t.match(await after.call('POST', '/instances/web/stop'), { status: 200, body: { state: 'Stopped' } })
    t.same((await readdir(folder)).sort(), ['operations.log', 'output.log', 'overlay.ext4', 'report', 'vmm.log'])
  })
}

for (const step of ['capture', 'captured'] as const) {
  t.test(`of a standby that was cut off at "${step}", the next server removes what was written of memory that its VM keeps in no file`, async (t) => {
    const config = { memoryFiles: false }
    const before = await running(t, { config })
    const folder = (app: TestApp): string => join(app.dataDir, 'instances', before.id)
    const memory = async (app: TestApp): Promise<string[]> => (await readdir(folder(app))).filter((name) => name.startsWith('memory'))
    t.same(await memory(before), [])
    const after = await crashAt(t, before, step, async () => await before.call('POST', '/instances/web/standby'), async (t, options) => {
      // As QEMU leaves it beside the memory.
      await writeFile(join(options.dataDir ?? '', 'instances', before.id, 'memory.changes'), '')
      return await startApp(t, { ...options, config })
    })
    await after.waitFor('web', 'Running')
    await until(async () => (await memory(after)).length === 0)
    t.match(await after.call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby' } })
    t.match(await after.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  })
}

t.test('a restore that was cut off before its VM ran leaves the instance in standby', async (t) => {
  const before = await running(t)
  await before.call('POST', '/instances/web/standby')
  const after = await crashAt(t, before, 'restore', async () => await before.call('POST', '/instances/web/restore'))
  t.match((await after.call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
  t.match(await after.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
})

for (const [step, when] of [['loaded', 'as its VM was about to run'], ['restored', 'after its VM ran, and before that was stored']] as const) {
  t.test(`a restore that was cut off ${when}, is finished by the next server, and nothing of the memory is lost`, async (t) => {
    const before = await running(t)
    await before.call('POST', '/instances/web/standby')
    const resumed: (string | undefined)[] = []
    const after = await crashAt(t, before, step, async () => await before.call('POST', '/instances/web/restore'), async (t, options) => {
      before.host.onStep = (now, vm) => { if (now === 'resume') resumed.push(vm?.handle.directory) }
      return await startApp(t, options)
    })
    t.match((await after.waitFor('web', 'Running')).body, { state: 'Running' })
    t.equal(resumed.length, 1)
    t.equal(before.host.vms.filter(({ state }) => state.status !== 'gone').length, 1, 'there is one VM')
    await until(async () => !(await readdir(join(after.dataDir, 'instances', before.id))).some((name) => name.startsWith('standby') || name.startsWith('restore')))
  })
}

/** The VM has ended with the server. */
const withoutItsVm = (before: TestApp, also: (options: StartOptions) => Promise<void> = async () => {}) => async (t: Test, options: StartOptions): Promise<TestApp> => {
  before.host.vm.set({ status: 'gone' })
  await also(options)
  return await startApp(t, options)
}

t.test('a restore that was cut off after its VM ran, which has ended before anybody knew of it, leaves the instance in standby as before', async (t) => {
  const before = await running(t)
  await before.call('POST', '/instances/web/standby')
  const after = await crashAt(t, before, 'restored', async () => await before.call('POST', '/instances/web/restore'), withoutItsVm(before))
  t.match((await after.call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true, state_error: null, restore_error: /the server ended while/ })
  t.same((await readdir(join(after.dataDir, 'instances', before.id))).sort(), ['memory', 'operations.log', 'output.log', 'overlay.ext4', 'report', 'standby', 'vmm.log'])
  t.match(await after.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
  t.notMatch(after.host.vm.restoredFrom?.memory, /gone on/)
})

t.test('the same when nothing was kept of the image makes the instance Stopped', async (t) => {
  const before = await running(t)
  await before.call('POST', '/instances/web/standby')
  const after = await crashAt(t, before, 'restored', async () => await before.call('POST', '/instances/web/restore'), withoutItsVm(before, async ({ dataDir = '' }) => {
    await rm(join(dataDir, 'instances', before.id, 'restore.kept'), { recursive: true })
  }))
  t.match((await after.call('GET', '/instances/web')).body, { state: 'Stopped', has_snapshot: false, exit_code: null, exit_message: /restore .* cut off/ })
  t.same((await readdir(join(after.dataDir, 'instances', before.id))).sort(), ['operations.log', 'output.log', 'overlay.ext4', 'report', 'vmm.log'])
  t.match(await after.call('POST', '/instances/web/start'), { status: 200 })
})

t.test('a restored guest that nobody had woken yet is woken by the next server', async (t) => {
  const before = await running(t)
  await before.call('POST', '/instances/web/standby')
  const after = await crashAt(t, before, 'wake', async () => await before.call('POST', '/instances/web/restore'))
  t.match((await after.waitFor('web', 'Running')).body, { state: 'Running' })
  t.same(after.host.vm.wakes, [{}])
  await until(async () => !(await readdir(join(after.dataDir, 'instances', before.id))).some((name) => name.startsWith('standby')))
})
