// The server dies between any two steps that concern a policy: the next one enforces those of the VMs that run, and nobody else's.
import t, { type Test } from 'tap'
import { startApp } from './app.ts'
import { copyOfData, crashAt } from './crash.ts'
import { asked, enforced, NEXT, REAL, type Mediated } from './egress-app.ts'
import { ScriptedHost, type ImagingStep } from './scripted.ts'
import { startWithTemplates } from './templates-app.ts'

/** With an instance `web` that runs, and one `other` that must never notice anything. */
async function running (t: Test): Promise<Mediated & { id: string, other: string }> {
  const host = new ScriptedHost()
  const { network, egress } = host.mediate()
  const app = await startApp(t, { host })
  const other = await app.make('other', asked)
  const id = await app.make('web', asked)
  await app.waitFor('other', 'Running')
  await app.waitFor('web', 'Running')
  return { ...app, network, egress, id, other }
}

function holds (t: Test, app: Mediated, ids: readonly string[]): void {
  t.same(enforced(app), [...ids].sort(), 'policies')
  for (const id of ids) t.equal(app.egress.policies.get(id)?.address, app.network.addresses.get(id)?.ip)
  t.same([...app.network.faults, ...app.egress.faults], [])
}

const steps: readonly ImagingStep[] = ['plugged', 'authority', 'enforce', 'enforced']

for (const step of [...steps, 'launch'] as const) {
  t.test(`a create that was cut off at "${step}" leaves no policy`, async (t) => {
    const before = await running(t)
    const after = await crashAt(t, before, step, async () => await before.call('POST', '/instances', { name: 'new', image: 'test', overlay_size: '32MB', ...asked }))
    holds(t, before, [before.id, before.other])
    const id = await after.make('new', asked)
    holds(t, before, [before.id, before.other, id])
  })
}

const others: readonly [call: string, before: readonly string[], steps: readonly ImagingStep[], state: string][] = [
  ['stop', [], ['lift', 'lifted', 'unplugged'], 'Stopped'],
  ['start', ['stop'], steps, 'Stopped'],
  ['standby', [], ['captured'], 'Running'],
  ['standby', [], ['kill', 'killed', 'lift', 'lifted', 'unplug', 'unplugged'], 'Standby'],
  ['restore', ['standby'], [...steps, 'restore'], 'Standby'],
  ['restore', ['standby'], ['wake'], 'Running']
]
for (const [name, calls, cuts, state] of others) {
  for (const step of cuts) {
    t.test(`a ${name} that was cut off at "${step}" leaves the instance in ${state}, ${state === 'Running' ? 'with' : 'without'} its policy`, async (t) => {
      const before = await running(t)
      for (const call of calls) await before.call('POST', `/instances/web/${call}`)
      const after = await crashAt(t, before, step, async () => await before.call('POST', `/instances/web/${name}`))
      await after.waitFor('web', state)
      t.match((await after.call('GET', '/instances/web')).body, { state })
      holds(t, before, state === 'Running' ? [before.id, before.other] : [before.other])
      t.equal((await after.call('DELETE', '/instances/web')).status, 204)
      holds(t, before, [before.other])
    })
  }
}

for (const step of [...steps, 'restore'] as const) {
  t.test(`a fork that was cut off at "${step}" leaves its source alone, and no policy of its own`, async (t) => {
    const before = await running(t)
    const after = await crashAt(t, before, step, async () => await before.call('POST', '/instances/web/fork', { name: 'twin', from_running: true }))
    await after.waitFor('web', 'Running')
    holds(t, before, [before.id, before.other])
  })
}

for (const step of ['lift', 'lifted', 'release', 'released'] as const) {
  t.test(`a delete that was cut off at "${step}" is finished`, async (t) => {
    const before = await running(t)
    const after = await crashAt(t, before, step, async () => await before.call('DELETE', '/instances/web'))
    t.equal((await after.call('GET', '/instances/web')).status, 404)
    holds(t, before, [before.other])
  })
}

for (const step of ['setEgress', 'egressSet', 'authority', 'enforce', 'enforced', 'resume'] as const) {
  t.test(`a create of a spare VM that was cut off at "${step}" leaves no policy`, async (t) => {
    const host = new ScriptedHost()
    const { network, egress } = host.mediate()
    const before = await startWithTemplates(t, { host })
    const first = await before.warmUp(asked)
    const spare = host.vm
    await crashAt(t, before, step, async () => {
      const { onStep } = host
      host.onStep = async (now, vm) => {
        // It ends as a process without a row's handle does.
        if (now === step) spare.state = { status: 'gone' }
        await onStep?.(now, vm)
      }
      await before.call('POST', '/instances', { name: 'second', image: 'test', overlay_size: '32MB', ...asked })
    }, startWithTemplates)
    holds(t, { ...before, network, egress }, [first])
  })
}

// Nothing of the new values before the row has them; from then on the next start of the server brings them.
const updates: readonly [step: ImagingStep, value: string][] = [['replace', NEXT], ['replacing', NEXT]]
for (const [step, value] of updates) {
  t.test(`an update that was cut off at "${step}" is finished`, async (t) => {
    const before = await running(t)
    t.equal(before.egress.valueOf(before.id, 'SECRET'), REAL)
    const after = await crashAt(t, before, step, async () => await before.call('PATCH', '/instances/web', { env: { SECRET: NEXT } }))
    t.match((await after.waitFor('web', 'Running')).body, { state: 'Running' })
    t.equal(before.egress.valueOf(before.id, 'SECRET'), value)
    t.equal(before.egress.valueOf(before.other, 'SECRET'), REAL)
    holds(t, before, [before.id, before.other])
  })
}

t.test('VMs that run keep their policies when the server is killed at any other moment', async (t) => {
  const before = await running(t)
  before.egress.calls.length = 0
  await startApp(t, { host: before.host, dataDir: await copyOfData(t, before.dataDir) })
  t.same(before.egress.calls, [`adopt ${[before.id, before.other].sort().join(' ')}`])
  holds(t, before, [before.id, before.other])
})
