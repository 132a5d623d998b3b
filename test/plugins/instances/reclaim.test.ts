// Memory that guests give back for a while: who is asked for how much, for how long, and what a crash leaves of it.
import t, { type Test } from 'tap'
import { eventually } from '../../helpers/eventually.ts'
import { startApp, type TestApp } from './app.ts'
import { crashAt } from './crash.ts'
import { floorOf, targetsFor } from '../../../plugins/instances/reclaim/plan.ts'
import type { ScriptedVm } from './scripted.ts'

const MIB = 2 ** 20
const URL = '/resources/memory/reclaim'

/** With `small` of 512 MiB and `large` of 1 GiB. */
async function running (t: Test): Promise<TestApp & { small: ScriptedVm, large: ScriptedVm }> {
  const app = await startApp(t)
  const vms: ScriptedVm[] = []
  for (const [name, size] of [['small', '512MB'], ['large', '1GB']] as const) {
    await app.make(name, { size })
    await app.waitFor(name, 'Running')
    vms.push(app.host.vm)
  }
  const [small, large] = vms
  if (small === undefined || large === undefined) throw new Error('no VMs')
  return { ...app, small, large }
}

t.test('a target leaves each guest its floor, and all together give what was asked for or what they can', (t) => {
  const floor = { percent: 50, bytes: 128 * MIB }
  t.equal(floorOf(1024 * MIB, floor), 512 * MIB)
  t.equal(floorOf(200 * MIB, floor), 128 * MIB)
  t.equal(floorOf(64 * MIB, floor), 64 * MIB)
  const candidates = [512, 1024, 100, 64].map((mib) => ({ assignedBytes: mib * MIB, floorBytes: floorOf(mib * MIB, floor) }))
  for (const asked of [0, 1, MIB, 3 * MIB, 300 * MIB + 5, 767 * MIB, 768 * MIB, Number.MAX_SAFE_INTEGER]) {
    const targets = targetsFor(asked, candidates)
    t.ok(targets.every((target, index) => target >= (candidates[index]?.floorBytes ?? 0) && target <= (candidates[index]?.assignedBytes ?? 0) && target % MIB === 0), String(asked))
    t.equal(candidates.reduce((sum, { assignedBytes }, index) => sum + assignedBytes - (targets[index] ?? 0), 0), Math.min(Math.ceil(asked / MIB) * MIB, 768 * MIB), String(asked))
  }
  t.same(targetsFor(300 * MIB, candidates), [412 * MIB, 824 * MIB, 100 * MIB, 64 * MIB], 'by what each could give')
  t.same(targetsFor(MIB, []), [])
  t.end()
})

t.test('guests give by what they can, the answer has what was measured, and 0 gives it back', async (t) => {
  const { call, small, large } = await running(t)
  const { status, body } = await call('POST', URL, { reclaim_bytes: 300 * MIB, hold_for: '10m', reason: 'a test' })
  t.equal(status, 200)
  t.match(body, {
    requested_reclaim_bytes: 300 * MIB, planned_reclaim_bytes: 300 * MIB, applied_reclaim_bytes: 300 * MIB, host_pressure_state: /^(healthy|pressure)$/,
    actions: [
      { instance_name: 'small', hypervisor: 'qemu', status: 'applied', assigned_memory_bytes: 512 * MIB, protected_floor_bytes: 256 * MIB, previous_target_guest_memory_bytes: 512 * MIB, target_guest_memory_bytes: 412 * MIB, applied_reclaim_bytes: 100 * MIB },
      { instance_name: 'large', status: 'applied', target_guest_memory_bytes: 824 * MIB, applied_reclaim_bytes: 200 * MIB }
    ]
  })
  t.ok(Number(body['host_available_bytes']) > 0)
  t.ok(Math.abs(Date.parse(String(body['hold_until'])) - Date.now() - 600_000) < 60_000)
  t.same([small.memory, large.memory], [412 * MIB, 824 * MIB])
  const more = await call('POST', URL, { reclaim_bytes: 10 ** 15 })
  t.match(more.body, { planned_reclaim_bytes: 768 * MIB, actions: [{ previous_target_guest_memory_bytes: 412 * MIB, target_guest_memory_bytes: 256 * MIB }, {}] }, 'down to the floors, and not beyond')
  const back = await call('POST', URL, { reclaim_bytes: 0 })
  t.match(back.body, { planned_reclaim_bytes: 0, applied_reclaim_bytes: 0, actions: [{ status: 'applied', target_guest_memory_bytes: 512 * MIB }, { status: 'applied' }] })
  t.notHas(back.body, 'hold_until')
  t.same([small.memory, large.memory], [512 * MIB, 1024 * MIB])
})

t.test('a dry run says what would be asked, and asks nobody', async (t) => {
  const { call, small, large } = await running(t)
  const { body } = await call('POST', URL, { reclaim_bytes: 300 * MIB, dry_run: true })
  t.match(body, { planned_reclaim_bytes: 300 * MIB, applied_reclaim_bytes: 0, actions: [{ status: 'planned', planned_target_guest_memory_bytes: 412 * MIB, target_guest_memory_bytes: 512 * MIB }, { status: 'planned' }] })
  t.notHas(body, 'hold_until')
  t.same([...small.aims, ...large.aims], [])
})

t.test('once its time is over everything is given back', async (t) => {
  const { call, small } = await running(t)
  t.match(await call('POST', URL, { reclaim_bytes: 300 * MIB, hold_for: '100ms' }), { status: 200, body: { applied_reclaim_bytes: 300 * MIB } })
  await eventually('the guest has everything again', () => small.memory === 512 * MIB)
  t.match((await call('POST', URL, { reclaim_bytes: 0 })).body, { actions: [{ status: 'unchanged', previous_target_guest_memory_bytes: 512 * MIB }, { status: 'unchanged' }] })
})

t.test('who is in standby or stopped is left alone, and who comes back has everything', async (t) => {
  const { call, host, small, large } = await running(t)
  await call('POST', URL, { reclaim_bytes: 300 * MIB })
  t.equal((await call('POST', '/instances/small/standby')).status, 200)
  const { body } = await call('POST', URL, { reclaim_bytes: 300 * MIB })
  t.match(body, { planned_reclaim_bytes: 300 * MIB, actions: [{ instance_name: 'large', target_guest_memory_bytes: 724 * MIB }] })
  t.equal((body['actions'] as unknown[]).length, 1)
  t.equal(large.memory, 724 * MIB)
  const asked = small.aims.length
  t.equal((await call('POST', '/instances/small/restore')).status, 200)
  t.match((await call('POST', URL, { reclaim_bytes: 0 })).body, { actions: [{ instance_name: 'small', previous_target_guest_memory_bytes: 512 * MIB }, { instance_name: 'large' }] })
  t.equal(small.aims.length, asked)
  t.equal(host.vm.memory, 512 * MIB)
})

t.test('a VM without a balloon, and one that does not answer, are told of, and the others give what they can', async (t) => {
  const { call, host, small, large } = await running(t)
  host.failures.set('aim', new Error('the VMM is silent'))
  const { body } = await call('POST', URL, { reclaim_bytes: 100 * MIB })
  t.match(body, { applied_reclaim_bytes: 0, actions: [{ status: 'error', error: /did not answer/ }, { status: 'error' }] })
  t.notMatch(JSON.stringify(body), /silent/)
  host.failures.clear()
  large.stubborn = true
  const closing = call('POST', URL, { reclaim_bytes: 300 * MIB })
  t.match((await closing).body, { planned_reclaim_bytes: 300 * MIB, applied_reclaim_bytes: 100 * MIB, actions: [{ status: 'applied' }, { status: 'partial', applied_reclaim_bytes: 0 }] })
  t.equal(small.memory, 412 * MIB)
  host.hasBalloons = false
  await call('POST', '/instances/small/stop')
  await call('POST', '/instances/small/start')
  t.match((await call('POST', URL, { reclaim_bytes: 1 })).body, { actions: [{ instance_name: 'small', status: 'unsupported', error: /balloon/, target_guest_memory_bytes: 512 * MIB }, { instance_name: 'large' }] })
})

t.test('where no hypervisor has a balloon nobody can be asked', async (t) => {
  const { call, host } = await startApp(t)
  Object.assign(host.driver, { features: ['disk-io-limit'] })
  t.match(await call('POST', URL, { reclaim_bytes: 1 }), { status: 501, body: { code: 'not_supported' } })
})

const wrong: readonly [unknown, RegExp][] = [
  [{}, /^reclaim_bytes/], [{ reclaim_bytes: -1 }, /^reclaim_bytes/], [{ reclaim_bytes: 1.5 }, /^reclaim_bytes/], [{ reclaim_bytes: 2 ** 60 }, /^reclaim_bytes/], [{ reclaim_bytes: '1GB' }, /^reclaim_bytes/],
  [{ reclaim_bytes: 1, hold_for: 'soon' }, /^hold_for: "soon"/], [{ reclaim_bytes: 1, hold_for: '61m' }, /^hold_for: must be at most 1h/], [{ reclaim_bytes: 1, hold_for: '-1m' }, /^hold_for/],
  [{ reclaim_bytes: 1, reason: 'x'.repeat(257) }, /^reason/], [{ reclaim_bytes: 1, other: 1 }, /^other is not a known field/]
]
t.test('a wrong request is refused', async (t) => {
  const { call } = await startApp(t)
  for (const [body, message] of wrong) t.match(await call('POST', URL, body), { status: 400, body: { code: 'invalid_request', message } }, JSON.stringify(body))
})

t.test('what a server that was killed has taken the next one gives back', async (t) => {
  const { small, large, ...app } = await running(t)
  await app.call('POST', URL, { reclaim_bytes: 100 * MIB, hold_for: '1h' })
  await crashAt(t, app, 'aim', async () => await app.call('POST', URL, { reclaim_bytes: 300 * MIB, hold_for: '1h' }))
  await eventually('both have everything again', () => small.memory === 512 * MIB && large.memory === 1024 * MIB)
  t.same([small.memory, large.memory], [512 * MIB, 1024 * MIB])
})

t.test('a server that ends gives everything back first', async (t) => {
  const { app, call, small } = await running(t)
  await call('POST', URL, { reclaim_bytes: 300 * MIB, hold_for: '1h' })
  await app.stop()
  t.equal(small.memory, 512 * MIB)
})
