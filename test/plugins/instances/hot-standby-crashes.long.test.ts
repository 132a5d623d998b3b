// The server dies between any two steps of a standby that keeps its VM, and of a restore that goes on with it: the next one finds the data folder, and the VM, as they were at that moment.
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startApp, type StartOptions, type TestApp } from './app.ts'
import { chosen, crashPoints } from './crash-points.ts'
import { crashAt, until } from './crash.ts'
import { openDatabase } from './database.ts'
import { ScriptedHost, type ImagingStep } from './scripted.ts'
import type { ScriptedVm } from './scripted-vm.ts'

const on = { hotStandby: { enabled: true } }

interface Running extends TestApp { readonly id: string, readonly vm: ScriptedVm }

async function running (t: Test): Promise<Running> {
  const host = new ScriptedHost()
  host.connect()
  const app = await startApp(t, { host, config: on })
  const id = await app.make('web', { size: '256MB' })
  await app.waitFor('web', 'Running')
  return { ...app, id, vm: host.vm }
}

async function resting (t: Test): Promise<Running> {
  const app = await running(t)
  t.match(await app.call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby' } })
  await until(async () => app.host.network?.suspended.has(app.id) === true)
  return app
}

/** Whether a server that starts there finds the VM by its row, or by the note of whom an image was taken for. */
async function isFound (dataDir: string, id: string): Promise<boolean> {
  if (existsSync(join(dataDir, 'instances', id, 'standby.taken', 'vm.json'))) return true
  const database = await openDatabase(dataDir)
  try {
    const row: { handle: string | null } | undefined = await database('instances_instances').where({ id }).first('handle')
    return typeof row?.handle === 'string'
  } finally {
    await database.destroy()
  }
}

/** Starts the next server. A VMM that no row knows is ended by it: here there is no process, so it goes by itself. */
const withoutOrphans = (id: string, vm: ScriptedVm) => async (t: Test, options: StartOptions): Promise<TestApp> => {
  if (!await isFound(options.dataDir ?? '', id)) vm.state = { status: 'gone' }
  return await startApp(t, { ...options, config: on })
}

const foldersOf = async ({ dataDir }: TestApp, id: string): Promise<string[]> => (await readdir(join(dataDir, 'instances', id))).filter((name) => /^(?:standby|restore)/.test(name))

const standbys: readonly [ImagingStep, string][] = [['sleep', 'Running'], ['slept', 'Running'], ['capture', 'Running'], ['captured', 'Running'], ['suspend', 'Standby'], ['suspended', 'Standby']]
for (const [step, state] of standbys) {
  t.test(`a standby that was cut off at "${step}" is ${state === 'Running' ? 'undone' : 'finished, without its VM'}`, async (t) => {
    const before = await running(t)
    const after = await crashAt(t, before, step, async () => await before.call('POST', '/instances/web/standby'), withoutOrphans(before.id, before.vm))
    t.match((await after.waitFor('web', state)).body, { state })
    t.equal(before.vm.state.status, state === 'Running' ? 'running' : 'gone')
    if (state === 'Running') t.match(await after.call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby' } })
    t.match(await after.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
    t.equal(before.host.vms.length, state === 'Running' ? 1 : 2)
    await until(async () => (await foldersOf(after, before.id)).length === 0)
    t.same(before.host.network?.faults, [])
  })
}

for (const [step, when] of [['resumePort', 'before its network was back'], ['portResumed', 'when its network was back'], ['resume', 'as its VM was about to go on']] as const) {
  t.test(`a hot restore that was cut off ${when} loses nothing of the memory, and there is one VM`, async (t) => {
    const before = await resting(t)
    const after = await crashAt(t, before, step, async () => await before.call('POST', '/instances/web/restore'), withoutOrphans(before.id, before.vm))
    const { state } = (await after.call('GET', '/instances/web')).body
    if (state === 'Standby') t.match(await after.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } })
    else t.match((await after.waitFor('web', 'Running')).body, { state: 'Running' })
    if (step === 'resume') t.not(state, 'Standby', 'whom the image was taken for is known')
    t.equal(before.host.vms.filter(({ state: { status } }) => status !== 'gone').length, 1)
    await until(async () => (await foldersOf(after, before.id)).length === 0)
    t.same(before.host.network?.faults, [])
  })
}

t.test('a guest that nobody had woken yet after a hot restore is woken by the next server', async (t) => {
  const before = await resting(t)
  const after = await crashAt(t, before, 'wake', async () => await before.call('POST', '/instances/web/restore'), withoutOrphans(before.id, before.vm))
  t.match((await after.waitFor('web', 'Running')).body, { state: 'Running' })
  t.same(before.vm.wakes, [{}])
  await until(async () => (await foldersOf(after, before.id)).length === 0)
  t.same(before.host.network?.faults, [])
})

/** What is left after a crash of the server alone, or of server and VMM. */
for (const also of ['', ' and its VM ends, too'] as const) {
  t.test(`a hot restore whose server dies before any of its changes to files${also}: the guest goes on, or its image is whole, or its end is told; it never goes on twice from the same memory`, async (t) => {
    const app = await resting(t)
    const points = await crashPoints(t, app.dataDir, async () => { t.match(await app.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } }) })
    t.ok(points.length >= 5, points.map(({ step }) => step).join('; '))
    for (const { step, dataDir } of chosen(points)) await after(t, app, step, dataDir, also !== '')
  })
}

async function after (t: Test, { host, id, vm }: Running, step: string, dataDir: string, isGone: boolean): Promise<void> {
  const isTaken = await isFound(dataDir, id)
  const later = new ScriptedHost()
  later.connect()
  later.held.add(`instance ${id}`)
  later.vms.push(vm)
  const isAsleep = existsSync(join(dataDir, 'instances', id, 'standby.taken'))
  vm.state = { status: isGone || !isTaken ? 'gone' : isAsleep ? 'paused' : 'running' }
  vm.phase = isAsleep ? 'asleep' : 'running'
  vm.isCaptured = false
  const server = await startApp(t, { host: later, dataDir, config: on })
  const { body } = await server.call('GET', '/instances/web')
  if (isTaken && !isGone) {
    t.match((await server.waitFor('web', 'Running')).body, { state: 'Running' }, step)
    t.equal(later.vms.length, 1, `${step}: the same VM`)
  } else if (body['state'] === 'Standby') {
    t.match(await server.call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running' } }, step)
    t.notMatch(later.vm.restoredFrom?.memory, /gone on/, `${step}: from memory that nobody has gone on from`)
  } else {
    t.ok(isGone && isTaken, `${step}: nothing is lost with the server alone`)
    t.match(body, { state: 'Stopped', has_snapshot: false }, step)
  }
  t.same([host.network?.faults, later.network?.faults], [[], []])
  await until(async () => (await foldersOf(server, id)).length === 0)
  await server.app.stop()
}
