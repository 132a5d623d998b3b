// Guests of the board microvm boot one after the other, and none hangs: the board's only timer for measuring the processor's clock has no working interrupts (board.ts). A hundred of them with
// BERTH_WHOLE_TABLES=1, else a few: each is two seconds of processor time.
import t from 'tap'
import { converse, launch, makeSpec, type HypervisorFixture } from '../../contracts/hypervisor/fixture.ts'
import { playsWholeTables } from '../../../setup/test/share-of-commit.ts'
import { guest, makeMachines } from '../hypervisor-qemu/machine.ts'
import { makeDriver } from './machine.ts'

const BOOTS = playsWholeTables ? 100 : 4

t.setTimeout(1_800_000)
const machines = await makeMachines()
t.teardown(() => machines.remove())
const fixture: HypervisorFixture = { module: new URL('machine.js', import.meta.url), makeDriver, guest, makeMachine: machines.make }
const driver = await makeDriver()

for (let number = 1; number <= BOOTS; number++) {
  await t.test(`guest ${number} in a row boots, waits for its program, and ends`, async (t) => {
    const vm = await launch(t, driver, await makeSpec(t, fixture))
    const link = await converse(t, fixture, vm)
    t.equal((await link.hello).phase, 'waiting')
    await vm.kill()
    t.same(vm.state.status, 'gone')
  })
}
