// Cases of the files that the VMM writes by itself.
import { readFile, rename, stat } from 'node:fs/promises'
import type { Test } from 'tap'
import { converse, launch, makeSpec, workload, type HypervisorFixture } from './fixture.ts'
import { waitingVm } from './image-fixture.ts'
import { eventually } from '../../helpers/eventually.ts'

const ROTATIONS = 5

export async function outputCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('rotating the output under load loses, repeats and reorders nothing', async (t) => {
    const spec = await makeSpec(t, fixture)
    const { vm } = await waitingVm(t, fixture, await fixture.makeDriver(), spec)
    const link = await converse(t, fixture, vm)
    await link.run(workload('count'))
    const old: Array<{ path: string, size: number }> = []
    const { output } = spec.files
    for (let n = 1; n <= ROTATIONS; n++) {
      await eventually('output grows', async () => (await stat(output)).size > 5000)
      const path = `${output}.${n}`
      await rename(output, path)
      await vm.rotate('output', output)
      old.push({ path, size: (await stat(path)).size })
    }
    await eventually('output goes on in the last file', async () => (await stat(output)).size > 5000)
    await vm.kill()
    for (const { path, size } of old) t.equal((await stat(path)).size, size, `${path} is whole once rotate has returned`)
    const parts = await Promise.all([...old.map(({ path }) => path), output].map((path) => readFile(path, 'utf8')))
    const numbers = parts.join('').split('\n').slice(0, -1).map(Number)
    const wrong = numbers.findIndex((number, index) => number !== index)
    t.equal(wrong, -1, `line ${wrong} of ${numbers.length} says ${numbers[wrong]}`)
  })

  await t.test('the VMM\'s own log can be rotated, also to a file that is not there yet', async (t) => {
    const spec = await makeSpec(t, fixture)
    const vm = await launch(t, await fixture.makeDriver(), spec)
    const path = `${spec.files.vmm}.new`
    await vm.rotate('vmm', path)
    t.ok((await stat(path)).isFile())
    t.equal(vm.state.status, 'running')
  })
}
