// Cases of a VM's end, by order, by accident, and by the guest itself.
import { readFile } from 'node:fs/promises'
import type { Test } from 'tap'
import { contents, converse, launch, makeSpec, reaches, workload, type HypervisorFixture } from './fixture.ts'
import { waitingVm } from './image-fixture.ts'
import { vmmOf } from './vmm.ts'

export async function endingCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('kill returns when the process is gone, as often as it is called', async (t) => {
    const spec = await makeSpec(t, fixture)
    const before = await contents(spec.directory)
    const vm = await launch(t, await fixture.makeDriver(), spec)
    await Promise.all([vm.kill(), vm.kill()])
    t.notOk(vmmOf(fixture).isAlive(vm.handle))
    t.equal(vm.state.status, 'gone')
    await vm.wait()
    await vm.kill()
    t.same(await contents(spec.directory), before, 'its sockets are gone too')
  })

  await t.test('a VMM that dies is gone within 1 s', async (t) => {
    const vm = await launch(t, await fixture.makeDriver(), await makeSpec(t, fixture))
    vmmOf(fixture).crash(vm.handle)
    t.ok(await reaches(vm, 'gone') <= 1000)
    await vm.wait()
  })

  await t.test('the end of the program ends the VM; its output is whole and the report tells the exit code', async (t) => {
    const driver = await fixture.makeDriver()
    for (const [program, exitCode, output] of [[['print', 'last words'], 0, 'last words\n'], [['exit', '3'], 3, '']] as const) {
      const spec = await makeSpec(t, fixture)
      const { vm } = await waitingVm(t, fixture, driver, spec)
      const link = await converse(t, fixture, vm)
      await link.run(workload(...program))
      await vm.wait()
      t.equal(vm.state.status, 'gone')
      t.equal(await readFile(spec.files.output, 'utf8'), output)
      t.match(await readFile(spec.files.report, 'utf8'), new RegExp(`^exit_code=${exitCode}$[^]*^end$`, 'm'))
    }
  })
}
