// The server dies between any two steps that concern the network: the next one gives back what is nobody's, leaves running VMs alone, and unplugs what has no VM.
import t, { type Test } from 'tap'
import { startApp, type TestApp } from './app.ts'
import { copyOfData, crashAt, until } from './crash.ts'
import { ScriptedHost, type ImagingStep } from './scripted.ts'
import type { ScriptedNetwork } from './scripted-network.ts'
import { startWithTemplates } from './templates-app.ts'

interface Networked extends TestApp { readonly id: string, readonly network: ScriptedNetwork }

/** With an instance `web` that runs, and one `other` that must never notice anything. */
async function running (t: Test): Promise<Networked & { other: string }> {
  const host = new ScriptedHost()
  const network = host.connect()
  const app = await startApp(t, { host })
  const other = await app.make('other')
  const id = await app.make('web')
  await app.waitFor('other', 'Running')
  await app.waitFor('web', 'Running')
  return { ...app, id, other, network }
}

function holds (t: Test, network: ScriptedNetwork, addresses: readonly string[], ports: readonly string[]): void {
  t.same([...network.addresses.keys()].sort(), [...addresses].sort(), 'addresses')
  t.same([...network.ports.keys()].sort(), [...ports].sort(), 'TAPs')
  t.same(network.faults, [])
}

t.test('VMs that run keep their TAPs untouched when the server is killed', async (t) => {
  const before = await running(t)
  before.network.calls.length = 0
  const after = await startApp(t, { host: before.host, dataDir: await copyOfData(t, before.dataDir) })
  t.match((await after.waitFor('web', 'Running')).body, { state: 'Running' })
  t.same(before.network.calls, [])
  t.match((await after.call('GET', '/instances/web')).body['network'], { ip: before.network.addresses.get(before.id)?.ip })
})

t.test('a VM that ended while no server was there is unplugged', async (t) => {
  const before = await running(t)
  const dataDir = await copyOfData(t, before.dataDir)
  const { network } = before
  const port = network.ports.get(before.id)
  await before.host.vm.exit()
  await until(async () => !network.ports.has(before.id))
  if (port !== undefined) network.ports.set(before.id, port)
  const after = await startApp(t, { host: before.host, dataDir })
  await after.waitFor('web', 'Stopped')
  holds(t, network, [before.id, before.other], [before.other])
})

// Not once it is launched: a scripted VM has no process, by which the next server would find it and end it.
const creates: readonly ImagingStep[] = ['allocate', 'allocated', 'plug', 'plugged', 'launch']
for (const step of creates) {
  t.test(`a create that was cut off at "${step}" leaves nothing in the network`, async (t) => {
    const before = await running(t)
    const after = await crashAt(t, before, step, async () => await before.call('POST', '/instances', { name: 'new', image: 'test', overlay_size: '32MB' }))
    holds(t, before.network, [before.id, before.other], [before.id, before.other])
    await after.make('new')
  })
}

// Where the VM is, in each case, is what recovery decides; no TAP may be without one.
const others: readonly [call: string, before: readonly string[], step: ImagingStep, state: string, isPlugged: boolean][] = [
  ['stop', [], 'unplug', 'Stopped', false],
  ['stop', [], 'unplugged', 'Stopped', false],
  ['start', ['stop'], 'plug', 'Stopped', false],
  ['start', ['stop'], 'plugged', 'Stopped', false],
  ['standby', [], 'captured', 'Running', true],
  ['standby', [], 'kill', 'Standby', false],
  ['standby', [], 'unplug', 'Standby', false],
  ['standby', [], 'unplugged', 'Standby', false],
  ['restore', ['standby'], 'plug', 'Standby', false],
  ['restore', ['standby'], 'plugged', 'Standby', false],
  ['restore', ['standby'], 'restore', 'Standby', false],
  ['restore', ['standby'], 'wake', 'Running', true]
]
for (const [name, calls, step, state, isPlugged] of others) {
  t.test(`a ${name} that was cut off at "${step}" leaves the instance in ${state}, ${isPlugged ? 'plugged' : 'without a TAP'}`, async (t) => {
    const before = await running(t)
    for (const call of calls) await before.call('POST', `/instances/web/${call}`)
    const after = await crashAt(t, before, step, async () => await before.call('POST', `/instances/web/${name}`))
    await after.waitFor('web', state)
    t.match((await after.call('GET', '/instances/web')).body, { state })
    holds(t, before.network, [before.id, before.other], isPlugged ? [before.id, before.other] : [before.other])
    t.equal((await after.call('DELETE', '/instances/web')).status, 204)
    holds(t, before.network, [before.other], [before.other])
  })
}

const forks: readonly ImagingStep[] = ['allocate', 'allocated', 'plug', 'plugged', 'restore']
for (const step of forks) {
  t.test(`a fork that was cut off at "${step}" leaves its source alone`, async (t) => {
    const before = await running(t)
    const after = await crashAt(t, before, step, async () => await before.call('POST', '/instances/web/fork', { name: 'twin', from_running: true }))
    await after.waitFor('web', 'Running')
    holds(t, before.network, [before.id, before.other], [before.id, before.other])
  })
}

for (const step of ['release', 'released'] as const) {
  t.test(`a delete that was cut off at "${step}" is finished`, async (t) => {
    const before = await running(t)
    const after = await crashAt(t, before, step, async () => await before.call('DELETE', '/instances/web'))
    t.equal((await after.call('GET', '/instances/web')).status, 404)
    holds(t, before.network, [before.other], [before.other])
  })
}

for (const step of ['allocated', 'plugged'] as const) {
  t.test(`a template that was cut off at "${step}" leaves nothing in the network`, async (t) => {
    const host = new ScriptedHost()
    const network = host.connect()
    const before = await startWithTemplates(t, { host })
    host.behaviour = 'boot-only'
    const first = await before.make('first')
    await crashAt(t, before, step, async () => {
      host.behaviour = 'run'
      host.vm.begin()
    }, startWithTemplates)
    t.same([[...network.addresses.keys()], [...network.ports.keys()]], [[first], [first]])
  })
}

t.test('a spare VM that a killed server leaves gives its address back', async (t) => {
  const host = new ScriptedHost()
  const network = host.connect()
  const before = await startWithTemplates(t, { host })
  const first = await before.warmUp()
  t.equal(network.addresses.size, 2)
  // It ends as a process without a row's handle does.
  const spare = host.vm
  const dataDir = await copyOfData(t, before.dataDir)
  spare.state = { status: 'gone' }
  await startWithTemplates(t, { host, dataDir })
  t.same([[...network.addresses.keys()], [...network.ports.keys()]], [[first], [first]])
})
