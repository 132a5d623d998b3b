// Cases of a VM's state: it is what the VMM says, and its silence is told.
import type { Test } from 'tap'
import type { VmState } from '../../../core/library/hypervisor.ts'
import { launch, makeSpec, reaches, type HypervisorFixture } from './fixture.ts'
import { vmmOf } from './vmm.ts'

export async function stateCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('a stopped VMM is hung within 2 s, with a reason, and running within 2 s of going on', async (t) => {
    const vm = await launch(t, await fixture.makeDriver(), await makeSpec(t, fixture))
    vmmOf(fixture).stop(vm.handle)
    t.ok(await reaches(vm, 'hung') <= 2000)
    t.match(vm.state.reason, /\w+ \w+/)
    vmmOf(fixture).goOn(vm.handle)
    t.ok(await reaches(vm, 'running') <= 2000)
    t.equal(vm.state.reason, undefined)
  })

  await t.test('a hung VM can be killed', async (t) => {
    const vm = await launch(t, await fixture.makeDriver(), await makeSpec(t, fixture))
    vmmOf(fixture).stop(vm.handle)
    await reaches(vm, 'hung')
    await vm.kill()
    t.equal(vm.state.status, 'gone')
  })

  await t.test('listeners hear each change once, `gone` last, and nothing after they unsubscribe', async (t) => {
    const vm = await launch(t, await fixture.makeDriver(), await makeSpec(t, fixture))
    const heard: VmState[] = []
    const unwanted: VmState[] = []
    vm.onState((state) => { heard.push(state) })
    vm.onState((state) => { unwanted.push(state) })()
    vmmOf(fixture).stop(vm.handle)
    await reaches(vm, 'hung')
    vmmOf(fixture).goOn(vm.handle)
    await reaches(vm, 'running')
    await vm.kill()
    t.same(heard.map(({ status }) => status), ['hung', 'running', 'gone'])
    t.same(unwanted, [])
  })
}
