// The phases of an instance's life: which one it is in, since when, and how long it was in the others.
import t from 'tap'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LifeClock } from '../../../plugins/instances/life/moment.ts'
import { firstPhase, withPhase } from '../../../plugins/instances/phases/phase.ts'
import type { InstanceRecord, RecordPatch } from '../../../plugins/instances/model/record.ts'
import { startApp } from './app.ts'
import { crashAt } from './crash.ts'

const handle = { driver: 'qemu', version: 1, vmmVersion: '0', pid: 1, startTicks: '0', bootId: 'a', directory: '/' }
const fresh: InstanceRecord = {
  id: 'a', hostId: 'h', name: 'web', status: 'creating', version: 1, createdAt: 1000, image: 'i', imageDigest: 'd', slot: null, handle: null, startedAt: null, runningAt: null, stoppedAt: null, standbyAt: null, exit: null, life: {},
  spec: { env: {}, hypervisor: 'qemu', vcpus: 1, memoryBytes: 1, overlayBytes: 1, skipGuestAgent: false, skipKernelHeaders: false, tags: {} }
}

/** Time passes by both clocks; `set` moves the one of day alone. */
function clockAt (start: number): LifeClock & { pass (ms: number): void, set (ms: number): void, boot: string } {
  let [now, uptime] = [start, 50_000]
  return { boot: 'one', now: () => now, uptimeMs: () => uptime, pass (ms) { now += ms; uptime += ms }, set (ms) { now += ms } }
}

t.test('each stay is counted by uptime, whatever is done to the clock, and phases that come again add up', (t) => {
  const clock = clockAt(1000)
  let record = fresh
  const change = (ms: number, patch: RecordPatch): void => {
    clock.pass(ms)
    record = { ...record, ...withPhase(record, patch, clock) }
  }
  change(300, { status: 'active', handle, startedAt: 1300 })
  t.match(record.life.phase, { name: 'initializing', since: { at: 1300 }, spentMs: { creating: 300 } })
  change(50, { runningAt: 1350 })
  clock.set(3_600_000)
  change(1000, { handle: null, runningAt: null, standbyAt: 5 })
  t.same(record.life.phase?.spentMs, { creating: 300, initializing: 50, running: 1000 })
  change(7, { spec: { ...record.spec, tags: { a: 'b' } } })
  t.same(record.life.phase?.spentMs, { creating: 300, initializing: 50, running: 1000 }, 'another change is none of phases')
  change(3, { handle, standbyAt: null })
  clock.set(-9_000_000)
  change(20, { runningAt: 1 })
  change(500, { handle: null, runningAt: null, stoppedAt: 1 })
  t.match(record.life.phase, { name: 'stopped', spentMs: { creating: 300, initializing: 70, running: 1500, standby: 10 } })
  clock.boot = 'two'
  change(40, { handle, stoppedAt: null })
  t.equal(record.life.phase?.spentMs.stopped, 40, 'after another boot of the host the clock tells')
  t.end()
})

t.test('a row of before there were phases begins when its state did', (t) => {
  const clock = clockAt(10_000)
  const phaseOf = (patch: Partial<InstanceRecord>) => firstPhase({ ...fresh, status: 'active', ...patch }, clock)
  t.match(phaseOf({ handle, startedAt: 4000, runningAt: 5000 }), { name: 'running', since: { at: 5000 }, spentMs: {} })
  t.match(phaseOf({ standbyAt: 7000 }), { name: 'standby', since: { at: 7000 } })
  t.match(phaseOf({ stoppedAt: 8000 }), { name: 'stopped', since: { at: 8000 } })
  t.match(phaseOf({}), { name: 'stopped', since: { at: 1000 } })
  t.match(phaseOf({ stoppedAt: 99_000 }), { since: { at: 10_000 } }, 'and never in the future')
  t.end()
})

t.test('the answer tells of them over a standby, a stop and a start, and a fork begins anew', async (t) => {
  const { call, make, waitFor } = await startApp(t)
  await make('web')
  await waitFor('web', 'Running')
  const view = async (name = 'web') => (await call('GET', `/instances/${name}`)).body
  const running = await view()
  t.match(running, { current_phase: 'running', phase_durations_ms: { creating: Number, initializing: Number } })
  t.ok(Date.parse(String(running['current_phase_since'])) >= Date.parse(String(running['created_at'])))
  await sleep(30)
  t.match((await call('POST', '/instances/web/standby')).body, { current_phase: 'standby', phase_durations_ms: { running: Number } })
  const asleep = await view()
  t.ok((asleep['phase_durations_ms'] as Record<string, number>)['running'] ?? 0 >= 30)
  t.match((await call('POST', '/instances/web/fork', { name: 'twin' })).body, { current_phase: 'standby', phase_durations_ms: { running: undefined } })
  await call('POST', '/instances/web/restore')
  await waitFor('web', 'Running')
  t.match((await call('POST', '/instances/web/stop')).body, { current_phase: 'stopped', phase_durations_ms: { standby: Number, running: Number } })
  await call('POST', '/instances/web/start')
  await waitFor('web', 'Running')
  t.match(await view(), { current_phase: 'running', phase_durations_ms: { stopped: Number, standby: Number } })
  t.same((await call('GET', '/instances')).body, [await view(), await view('twin')])
})

t.test('a server that was killed loses none of it', async (t) => {
  const before = await startApp(t)
  await before.make('web')
  await before.waitFor('web', 'Running')
  await before.call('POST', '/instances/web/standby')
  const asleep = (await before.call('GET', '/instances/web')).body
  const after = await crashAt(t, before, 'restored', async () => await before.call('POST', '/instances/web/restore'))
  const { body } = await after.call('GET', '/instances/web')
  const [then, now] = [asleep, body].map((each) => each['phase_durations_ms'] as Record<string, number>)
  t.equal(now?.['running'], then?.['running'], 'what was counted is counted once')
  t.equal(body['current_phase'] === 'standby' ? body['current_phase_since'] : asleep['current_phase_since'], asleep['current_phase_since'])
})
