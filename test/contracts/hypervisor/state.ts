// Cases of a VM's state: it is what the VMM says, and its silence is told.
import type { Test } from 'tap'
import type { VmState } from '../../../core/contracts/hypervisor.ts'
import { launch, makeSpec, reaches, type HypervisorFixture } from './fixture.ts'

/** that of a machine which is busy with other things */
const LIMIT_MS = 20_000

export async function stateCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('a stopped VMM is hung, with a reason, and running once it goes on', async (t) => {
    const vm = await launch(t, await fixture.makeDriver(), await makeSpec(t, fixture))
    process.kill(vm.handle.pid, 'SIGSTOP')
    t.comment(`hung after ${await reaches(vm, 'hung', LIMIT_MS)} ms`)
    t.match(vm.state.reason, /\w+ \w+/)
    process.kill(vm.handle.pid, 'SIGCONT')
    t.comment(`running after ${await reaches(vm, 'running', LIMIT_MS)} ms`)
    t.equal(vm.state.reason, undefined)
  })

  await t.test('a hung VM can be killed', async (t) => {
    const vm = await launch(t, await fixture.makeDriver(), await makeSpec(t, fixture))
    process.kill(vm.handle.pid, 'SIGSTOP')
    await reaches(vm, 'hung', LIMIT_MS)
    await vm.kill()
    t.equal(vm.state.status, 'gone')
  })

  await t.test('listeners hear each change once, `gone` last, and nothing after they unsubscribe', async (t) => {
    const vm = await launch(t, await fixture.makeDriver(), await makeSpec(t, fixture))
    const heard: VmState[] = []
    const unwanted: VmState[] = []
    vm.onState((state) => { heard.push(state) })
    vm.onState((state) => { unwanted.push(state) })()
    process.kill(vm.handle.pid, 'SIGSTOP')
    await reaches(vm, 'hung', LIMIT_MS)
    process.kill(vm.handle.pid, 'SIGCONT')
    await reaches(vm, 'running', LIMIT_MS)
    await vm.kill()
    // A busy machine may look hung once more.
    t.match(heard.map(({ status }) => status).join(' '), /^(hung running )+(hung )?gone$/)
    t.same(unwanted, [])
  })
}
