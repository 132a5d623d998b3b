// The fake driver keeps the contract of real ones, and does what its script says.
import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import type { VmSpec } from '../../core/library/hypervisor.ts'
import { StreamLink } from '../../plugins/guest/link/link.ts'
import { hypervisorConformance, type HypervisorFixture } from '../contracts/hypervisor.ts'
import { converse, launch, makeSpec, reaches, workload } from '../contracts/hypervisor/fixture.ts'
import { facetOf, imagingOf } from '../contracts/hypervisor/image-fixture.ts'
import { makeDriver } from './conformance-driver.ts'
import { FakeControl } from './control.ts'
import { createFakeDriver } from './driver.ts'
import { guest, makeMachine } from './fixture.ts'
import type { FakeScript } from './script.ts'

const fixture: HypervisorFixture = {
  module: new URL('conformance-driver.js', import.meta.url),
  makeDriver,
  guest,
  makeMachine
}
const scripted = (script: FakeScript) => createFakeDriver('vz', () => script)

await t.test('conformance', (t) => hypervisorConformance(t, fixture))

await t.test('a scripted failure of the launch is the error', async (t) => {
  await t.rejects(scripted({ launchFailure: 'no more memory' }).launch(await makeSpec(t, fixture)), /no more memory/)
})

await t.test('a scripted crash, a hang, and a return', async (t) => {
  const crashing = await launch(t, scripted({ crashAfterMs: 3000 }), await makeSpec(t, fixture))
  await reaches(crashing, 'gone')
  const spec = await makeSpec(t, fixture)
  const hanging = await launch(t, scripted({ hangAfterMs: 3000 }), spec)
  await reaches(hanging, 'hung')
  const control = await FakeControl.open(spec.directory)
  t.teardown(() => control.close())
  await control.ask({ do: 'unhang' })
  await reaches(hanging, 'running')
  await control.ask({ do: 'pause' })
  await reaches(hanging, 'paused')
  t.same(hanging.state, { status: 'paused' })
})

await t.test('a guest that is silent, and one that talks nonsense', async (t) => {
  for (const greeting of ['silence', 'garbage'] as const) {
    const vm = await launch(t, scripted({ greeting }), await makeSpec(t, fixture))
    const link = new StreamLink(await vm.connect(), { log: pino({ level: 'silent' }), answerTimeoutMs: 500 })
    await t.rejects(link.hello)
  }
})

await t.test('a program that cannot be found ends the VM with 127', async (t) => {
  const vm = await launch(t, await makeDriver(), await makeSpec(t, fixture))
  const link = await converse(t, fixture, vm)
  await t.rejects(link.run(workload('missing')), /no such file/)
  await vm.wait()
})

await t.test('a program ends on shutdown, unless the script says otherwise', async (t) => {
  const vm = await launch(t, await makeDriver(), await makeSpec(t, fixture))
  const link = await converse(t, fixture, vm)
  await link.run(workload('wait'))
  const exited = new Promise((resolve) => link.onExited(resolve))
  await link.shutdown(1000)
  t.match(await exited, { exitCode: 143, signal: 15 })
  await vm.wait()
  const stubborn = await launch(t, scripted({ ignoresShutdown: true }), await makeSpec(t, fixture))
  const other = await converse(t, fixture, stubborn)
  await other.run(workload('wait'))
  await other.shutdown(0)
  t.equal((await other.stat('/', { follow: true })).exists, false, 'it still answers')
})

await t.test('a scripted failure of a capture leaves the VM running, one of a restore leaves nothing', async (t) => {
  const spec = await makeSpec(t, fixture)
  let script: FakeScript = { captureFailure: 'no ink' }
  const driver = createFakeDriver('vz', () => script)
  const vm = await launch(t, driver, spec)
  const files = { statePath: join(spec.directory, 'state'), memoryPath: join(spec.directory, 'memory') }
  await t.rejects(facetOf(vm).capture(files), { code: 'vm_capture_failed', message: /no ink/ })
  t.same(vm.state, { status: 'running' })
  script = { captureDelayMs: 60_000 }
  await t.rejects(facetOf(vm).capture(files, AbortSignal.timeout(50)), { name: 'TimeoutError' })
  t.same(vm.state, { status: 'running' })
  script = { restoreFailure: 'no paper' }
  const image = await facetOf(vm).capture(files)
  await vm.kill()
  await t.rejects(imagingOf(driver).restore({ ...spec, memory: { path: files.memoryPath, sharing: 'shared' } }, image, files.statePath), { code: 'vm_restore_failed', message: /no paper/ })
})

await t.test('a network device is recorded in the handle, and is part of what an image fits', async (t) => {
  const driver = await makeDriver()
  const spec = await makeSpec(t, fixture)
  const network = { namespace: '/run/netns/one', tap: 'tap1', mac: '02:00:00:00:00:01' }
  const vm = await launch(t, driver, { ...spec, network })
  t.same(vm.handle.details?.['network'], network)
  const files = { statePath: join(spec.directory, 'state'), memoryPath: join(spec.directory, 'memory') }
  const image = await facetOf(vm).capture(files)
  await vm.kill()
  const restored: VmSpec = { ...spec, memory: { path: files.memoryPath, sharing: 'shared' } }
  t.not(await imagingOf(driver).key(restored), image.key)
  await t.rejects(imagingOf(driver).restore(restored, image, files.statePath), { code: 'image_incompatible', message: /network is "fake", the VM's is "none"/ })
  const other = { ...network, tap: 'tap2', mac: '02:00:00:00:00:02' }
  const back = await imagingOf(driver).restore({ ...restored, network: other }, image, files.statePath)
  t.teardown(() => back.kill())
  t.same(back.handle.details?.['network'], other)
})
